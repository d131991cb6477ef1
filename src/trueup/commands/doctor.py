"""`trueup doctor`: what this machine can do and how long things will take."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class DoctorVerb:
    """Check the installation and estimate what runs here will cost.

    In: nothing. Out: checks (versions, cores, physics speed, video, browser) and costs; exit code 1 if one fails.
    """

    json: bool = False
    """Print one JSON object instead of tables."""


def run(verb: DoctorVerb) -> int:
    """Run the checks and print them."""
    from trueup.report.doctor import print_doctor

    return print_doctor(as_json=verb.json)
