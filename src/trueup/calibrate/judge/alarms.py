"""Alarms: what a reader must know before any number of a calibration."""

from __future__ import annotations

from collections.abc import Iterator

from trueup.calibrate.origin import recorded_drivers
from trueup.world.fitted.calibration import Calibration

_REPLAYS = (1.3, 2.0)  # times the estimate's error: median of draws, 95 % of draws


def found_alarms(result: Calibration) -> tuple[str, ...]:
    """Everything that makes the result doubtful as a whole, in order of weight."""
    return tuple(_alarms(result))


def _alarms(result: Calibration) -> Iterator[str]:
    names = [name for name in recorded_drivers(result) if name is not None]
    if len(names) > 1:
        yield (
            f"these logs are of different robots ({', '.join(names)}): one set of parameters cannot be all of them; "
            "calibrate each on its own"
        )
    before, after = result.holdout_nominal, result.holdout_calibrated
    if before is not None and after is not None and after.open_loop_mean > before.open_loop_mean:
        yield (
            f"the calibrated model is worse than the nominal one on held-out data ({1e3 * after.open_loop_mean:.2f} "
            f"against {1e3 * before.open_loop_mean:.2f} mrad): do not use it; fit fewer parameters, or record more"
        )
    if result.estimates and all(entry.verdict == "not visible" for entry in result.estimates):
        yield (
            "the fit learned nothing: no parameter is visible in these logs; record larger and faster motion "
            "(`trueup record --excitation multisine`)"
        )
    check = result.predictive
    if check is not None and (check.median_ratio > _REPLAYS[0] or check.q95_ratio > _REPLAYS[1]):
        yield (
            f"draws from this posterior replay held-out data {check.median_ratio:.2f} times as badly as the estimate "
            f"(one in twenty over {check.q95_ratio:.2f} times): it is wider than the data allow; train with "
            "--no-posterior (the estimate alone), or fit fewer parameters"
        )
