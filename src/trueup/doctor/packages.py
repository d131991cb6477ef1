"""Which of the packages that trueup asks for are installed, and whether they are new enough."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import metadata

CORE = "core"
_REQUIREMENT = re.compile(
    r"^(?P<name>[A-Za-z0-9._-]+)(\[[^]]*\])?\s*(?P<bounds>[^;]*)(;.*extra\s*==\s*['\"](?P<extra>[\w-]+)['\"])?"
)


@dataclass(frozen=True, kw_only=True)
class Package:
    """A package that is asked for: with which extra, within which bounds, and the version found."""

    name: str
    extra: str
    bounds: str
    installed: str | None

    @property
    def fits(self) -> bool:
        return self.installed is not None and satisfies(self.installed, self.bounds)


def wanted_packages(distribution: str = "trueup") -> list[Package]:
    """List what the installed distribution asks for; empty if it runs from a bare checkout."""
    try:
        lines = metadata.requires(distribution) or []
    except metadata.PackageNotFoundError:
        return []
    found = [match for line in lines if (match := _REQUIREMENT.match(line)) and match["name"].lower() != distribution]
    return [
        Package(
            name=match["name"],
            extra=match["extra"] or CORE,
            bounds=match["bounds"].strip(),
            installed=_version(match["name"]),
        )
        for match in found
    ]


def satisfies(version: str, bounds: str) -> bool:
    """Compare release numbers (`3.17.0` with `>=3.17`): trueup asks for nothing but lower bounds."""
    return all(_release(version) >= _release(bound) for bound in re.findall(r">=\s*([\w.]+)", bounds))


def _release(version: str) -> list[int]:
    """The numbers of a version without trailing zeros; suffixes such as rc1 are not weighed."""
    match = re.match(r"\d+(\.\d+)*", version)
    numbers = [int(part) for part in match.group().split(".")] if match else []
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return numbers


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
