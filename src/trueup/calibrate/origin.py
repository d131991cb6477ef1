"""Which robot the logs of a calibration came from, so that the next recording is of the same one."""

from __future__ import annotations

from trueup.core.errors import TrueupError
from trueup.hardware.drivers.open import same_twin
from trueup.world.fitted.calibration import Calibration


def recorded_drivers(result: Calibration) -> tuple[str | None, ...]:
    """Drivers that the calibration's logs name, each once; None stands for logs that name none.

    References to one twin are one: real time or lock-step, the robot is the same.
    """
    logs = result.provenance.get("logs")
    found: list[str | None] = []
    for log in logs if isinstance(logs, list) else []:
        meta = log.get("meta") if isinstance(log, dict) else None
        driver = meta.get("driver") if isinstance(meta, dict) else None
        name = (same_twin(driver) or driver) if isinstance(driver, str) and driver else None
        if name not in found:
            found.append(name)
    return tuple(found)


def driver_for(result: Calibration, asked: str | None) -> tuple[str, str]:
    """Return the driver to record from for this calibration, and a remark for the user.

    `asked` is what the user named, which wins. Only twins are started because a file says so: a file must not choose
    which code runs or which address is spoken to.
    """
    found = recorded_drivers(result)
    names = ", ".join("unknown" if name is None else name for name in found) or "unknown"
    if asked is not None:
        known = [name for name in found if name is not None]
        differs = bool(known) and (same_twin(asked) or asked) not in known
        remark = f"warning: --driver {asked} is another robot than the calibration's logs came from ({names})"
        return asked, remark if differs else ""
    if len(found) == 1 and found[0] is not None and same_twin(found[0]):
        return found[0], f"driver {found[0]}, as in the calibration's logs"
    raise TrueupError(
        f"which robot shall be recorded? The calibration's logs came from: {names}. Name it with --driver"
    )
