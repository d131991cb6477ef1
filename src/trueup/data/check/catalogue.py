"""Catalogue of findings by code: consequence and fix, shared by docs and checks."""

from __future__ import annotations

# consequence of ignoring the finding
CONSEQUENCES: dict[str, str] = {
    # time
    "too_short": "Too few samples to tell a parameter from noise, and nothing is left to score on.",
    "time_backward": "Derivatives change sign and a replay runs in a wrong order.",
    "time_duplicate": "Velocity from position divides by zero, and one instant counts several times.",
    "time_gap": "A replay holds an old command across the gap and the fit explains the jump with wrong physics.",
    "time_jitter": "Row differences no longer give derivatives, and delay is blurred by the jitter.",
    "rate_low": "Delay, armature and friction reversals fall between two samples and cannot be told apart.",
    "rate_change": "One delay in samples means two delays in seconds within the same log.",
    "time_unit": "Every velocity, acceleration and delay is wrong by the factor of the unit.",
    "clock_drift": "The pairing of the streams slides during the log: a delay fitted at the start is wrong at the end.",
    "clock_jump": "After the jump the streams are paired with an offset.",
    # content
    "signal_missing": "Without measured position and command nothing can be fitted or replayed.",
    "not_finite": "One NaN turns a sum, a fit and a policy's output into NaN.",
    "unit_degrees": "Every angle is wrong by a factor of 57.3; a fit answers with absurd gains.",
    "unit_normalised": (
        "A stroke of 0..1 is not an angle: gains, inertia and velocity of this joint have no physical scale."
    ),
    "frozen": "The fit sees a joint that ignores its command and answers with huge friction.",
    "stale_samples": (
        "The true sampling is slower than the rows pretend: differences are zero, then doubled, and delay is biased."
    ),
    "encoder_jump": "One impossible step is an infinite acceleration: it dominates a least-squares fit.",
    "encoder_wrap": "The angle leaps by a full turn although the joint moved smoothly.",
    "quantisation": "Small motions and accelerations from differences are mostly rounding.",
    # range
    "torque_saturated": (
        "While the drive is at its limit the command has no influence: gains and delay cannot be read from there."
    ),
    "velocity_saturated": "At its speed limit a motor follows the torque-speed curve, not the gains.",
    "target_clipped": (
        "The logged command may not be what the excitation asked for, and its corners excite unmodelled modes."
    ),
    "torque_unsigned": "The torque column cannot be compared with a model: braking looks like driving.",
    "torque_sign": "Torque pushes away from the target: a torque-based fit finds negative gains.",
    "limits_exceeded": (
        "The simulator stops the joint where the robot moved on, or the column is not what its name says."
    ),
    "target_outside_limits": "The joint runs into its stop, and contact with the stop is read as stiffness.",
    "low_excitation": "Nothing about this joint can be identified from this log: its parameters stay at their prior.",
    "slow_excitation": "Friction and gravity can be read, inertia and delay cannot.",
    "narrow_excitation": "One frequency gives two numbers: stiffness, damping, inertia and delay cannot be told apart.",
    # velocity
    "velocity_sign": "Damping becomes driving: a simulation with this velocity is unstable.",
    "velocity_scale": "Damping and friction are wrong by the same factor.",
    "velocity_lag": "A filtered, late velocity makes damping look smaller and delay larger.",
    "velocity_order": "Damping is fitted with another joint's motion.",
    "velocity_unrelated": "Damping and friction are fitted to something that is not this joint's velocity.",
    # robot
    "joint_names": "Columns cannot be matched with the robot's joints by name, so a swap stays unseen.",
    "joint_order": "Each joint gets another joint's motion: every fitted parameter belongs to the wrong joint.",
    "joint_sign": "The simulated joint moves the other way: gravity and coupling act with the wrong sign.",
    "column_swap": "The command of one joint is compared with the motion of another.",
    "sign_flip": "The servo seems to run away from its target: the fit finds negative gains.",
    # pairing
    "command_late": (
        "The robot seems to react before it is told. A fit answers with zero delay and wrong gains, and a learned "
        "actuator model sees the future."
    ),
    "command_early": "If the commands were written down early, a fit finds a delay that the robot does not have.",
    "pairing_unknown": (
        "Commands written down a step early or late would stay unseen, and a fitted delay would absorb them."
    ),
}

# what to do
FIXES: dict[str, str] = {
    # time
    "too_short": "Record at least 10 s (20 s is better); join several short logs only as separate logs.",
    "time_backward": "Sort by the sensor's own stamp, or cut the log where the clock was set back.",
    "time_duplicate": "Keep one row a stamp; look for a logger that writes the same message twice.",
    "time_gap": "Cut the log at the gaps and use the pieces, or record again with a lighter computer load.",
    "time_jitter": "Resample on the stamps, stamp at the sensor instead of the logger, or use an absolute schedule.",
    "rate_low": "Log at the control rate or faster (200 Hz or more for a stiff servo).",
    "rate_change": "Cut the log where the rate changes, or resample both parts on the stamps.",
    "time_unit": "Declare the unit of the time column in the mapping file so that it is read in seconds.",
    "clock_drift": "Synchronise the clocks (PTP, chrony), or map one stream's stamps on the other by the fitted line.",
    "clock_jump": "Cut the log at the jump; look for a clock that was set during the recording.",
    # content
    "signal_missing": "Add the column to the mapping file, or record it.",
    "not_finite": "Find the dropped message; interpolate single rows, cut longer stretches.",
    "unit_degrees": 'Declare the column as degrees in the mapping file (`unit = "deg"`).',
    "unit_normalised": (
        "Map 0..1 on the joint's range in rad with scale and offset, or leave this joint out of the fit."
    ),
    "frozen": (
        "Cut this stretch. If the joint stood against a stop or a hand, record again with a smaller motion; else "
        "look at the cable and the driver."
    ),
    "stale_samples": "Log at the sensor's true rate or keep only rows with a new value.",
    "encoder_jump": "Cut the row; look for a communication fault, or an encoder that is re-zeroed.",
    "encoder_wrap": "Unwrap the column (numpy.unwrap), then check the offset against the robot's zero.",
    "quantisation": "Use larger or faster motions, and smooth over several samples before differentiating.",
    # range
    "torque_saturated": "Lower the amplitude or the frequency, or tell the fit the torque limit.",
    "velocity_saturated": "Lower the amplitude or the frequency, or fit the torque-speed curve with it.",
    "target_clipped": "Keep the excitation inside the limits, and log the command after clipping.",
    "torque_unsigned": "Use it as a magnitude only, or restore the sign from the firmware's direction bit.",
    "torque_sign": "Give the torque column sign = -1 in the mapping file.",
    "limits_exceeded": "Check offset, sign, order and unit of the column, then the limits in the robot's spec.",
    "target_outside_limits": "Usual for policies; for identification keep targets inside the limits.",
    "low_excitation": "Record this joint with a larger amplitude, or leave it out of the fit.",
    "slow_excitation": "Add faster motion: a chirp or a multisine up to the servo's bandwidth.",
    "narrow_excitation": "Use a chirp, a multisine or random holds.",
    # velocity
    "velocity_sign": "Give the velocity column sign = -1 in the mapping file.",
    "velocity_scale": "Check the unit (rpm, deg/s, motor side against joint side) and give the column a scale.",
    "velocity_lag": "Differentiate the position instead, or log the unfiltered velocity.",
    "velocity_order": "Put the velocity columns in the order of the positions.",
    "velocity_unrelated": "Check which quantity the column holds; differentiate the position instead.",
    # robot
    "joint_names": "Name the columns as in the robot's spec (mapping file).",
    "joint_order": "Reorder the columns in the mapping file as the evidence says, then check again.",
    "joint_sign": "Give the joint's columns sign = -1 in the mapping file.",
    "column_swap": "Put target and measured columns in the same order.",
    "sign_flip": "Give target or measured position of this joint sign = -1 in the mapping file.",
    # pairing
    "command_late": (
        "Row t must hold the state at time t and the command sent right after it: shift the target columns earlier "
        "by the lag in the evidence (often one control step), and mend the recorder."
    ),
    "command_early": (
        "Compare with the known transport delay. If it is real, let the fit's delay bounds include it; else shift "
        "the target columns later by one control step."
    ),
    "pairing_unknown": (
        "Record at 200 Hz or more, every joint with a multisine or random holds up to the servo's bandwidth, for "
        "10 s or longer; log the torque too: it answers a command at once."
    ),
}
