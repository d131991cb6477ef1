"""Certificate: results of the gate for one bundle, bound to its hash; a robot starts no policy without one.

It is stored beside the bundle as NAME.bundle.certificate.json and holds a hash of its own content, so that a line that
was edited by hand is refused as one whose bundle was changed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from trueup._version import __version__
from trueup.core.arrays import sha256_of
from trueup.core.documents import read_json, write_json
from trueup.core.errors import TrueupError

SCHEMA = 1
_MAX_BYTES = 1_000_000


class GateCheck(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One check of the gate and its result.

    state     "fail" blocks; "warn" does not; "skipped" says in `found` why it was not asked
    asked     the requirement as text with its number; found likewise
    value     the measured number, with its 95 % bounds where it is a statistic
    remedy    the command or the change that would correct it
    """

    name: str
    state: Literal["pass", "fail", "warn", "skipped"]
    asked: str
    found: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    remedy: str = ""


class Prediction(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Predicted results on an untested robot, as medians and 95 % intervals over worlds.

    error     mean over episodes of the task's error, in `unit`; success: share of episodes without a fall
    worlds    simulated robots that it comes from; `engines` those that they were simulated in
    """

    metric: str
    unit: str
    error: float
    error_low: float
    error_high: float
    success: float
    success_low: float
    success_high: float
    worlds: int
    engines: tuple[str, ...]

    def covers(self, error: float, success: float) -> bool:
        """Whether a robot's results lie within both intervals."""
        return self.error_low <= error <= self.error_high and self.success_low <= success <= self.success_high


class Certificate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All results of the gate; `passed` if nothing blocks.

    bundle    hash of the tested bundle
    inputs    hashes of the test's inputs: scenarios, calibration
    """

    schema: int = SCHEMA
    bundle: str
    name: str
    robot: str
    task: str
    trials: int
    seed: int
    engines: tuple[str, ...]
    inputs: dict[str, str]
    checks: tuple[GateCheck, ...]
    prediction: Prediction | None = None
    version: str = __version__
    sha256: str = ""

    @property
    def blocking(self) -> tuple[GateCheck, ...]:
        return tuple(check for check in self.checks if check.state == "fail")

    @property
    def passed(self) -> bool:
        return not self.blocking

    def sealed(self) -> Certificate:
        """The certificate with the hash of its content."""
        return msgspec.structs.replace(self, sha256=_content_hash(self))


def certificate_path(bundle: str | Path) -> Path:
    """Path of a bundle's certificate."""
    path = Path(bundle)
    return path.with_name(f"{path.name}.certificate.json")


def write_certificate(certificate: Certificate, path: str | Path) -> Path:
    """Write the certificate with the hash of its content."""
    return write_json(path, certificate.sealed())


def read_certificate(path: str | Path) -> Certificate:
    """Read a certificate and verify its hash; every failure names the file."""
    file, absent = Path(path), "no certificate here; make one with `trueup verify`"
    found = read_json(file, Certificate, "certificate", schema=SCHEMA, most_bytes=_MAX_BYTES, absent=absent)
    if found.sha256 != _content_hash(found):
        raise TrueupError("its content was changed after it was written: verify the bundle again", file=file)
    return found


def require_certificate(bundle: str | Path, bundle_hash: str) -> Certificate:
    """The passed certificate of a bundle; a TrueupError says what is missing."""
    path = certificate_path(bundle)
    if not path.exists():
        raise TrueupError(f"has no certificate; make one with `trueup verify {bundle}`", file=bundle)
    found = read_certificate(path)
    if found.bundle != bundle_hash:
        raise TrueupError(
            f"is the certificate of another bundle ({found.bundle[:12]}, this one is {bundle_hash[:12]}): verify again",
            file=path,
        )
    if not found.passed:
        names = ", ".join(check.name for check in found.blocking)
        raise TrueupError(f"this policy did not pass the gate: {names}; `trueup verify` shows the remedies", file=path)
    return found


def _content_hash(certificate: Certificate) -> str:
    plain = msgspec.structs.replace(certificate, sha256="")
    return sha256_of([msgspec.json.encode(plain, order="sorted")])
