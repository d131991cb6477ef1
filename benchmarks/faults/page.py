"""Text and headline numbers of the fault matrix."""

from __future__ import annotations

from typing import Any

from parts import table

from faults.hour import drift_ms
from faults.run import BAD, PEAK_S

Row = dict[str, Any]
_PAUSED_MS = 20.0  # a control period
_GUARD_LATE = ("late_p50", "late_p99", "late_p999", "late_max")
TWO_PERIODS_MS = 40.0
EXPECTED = {
    "tolerate": "go on",
    "stop": "damp within two control periods",
    "later": "damp when time has shown it",
    "either": "no sure sign: nothing asked but sane commands",
    "robot": "our commands do not arrive: the robot's own watchdog (100 ms)",
}


def headline(rows: dict[str, Row], *, is_guarded: bool) -> dict[str, object]:
    """The numbers that are asked for; of the plain loop under names of its own."""
    stop = [row for row in rows.values() if row["expect"] == "stop"]
    safe = [row["safe_worst_ms"] for row in stop if row["safe_worst_ms"] is not None]
    tolerated = [row for row in rows.values() if row["expect"] == "tolerate"]
    numbers: dict[str, object] = {
        "fault_rows": len(rows),
        "fault_runs": sum(row["runs"] for row in rows.values()),
        "bad_commands": sum(row[name] for row in rows.values() for name in BAD),
        "nonfinite_commands": sum(row["nonfinite"] for row in rows.values()),
        "visible_faults": sum(row["faults"] for row in stop),
        "visible_faults_stopped": sum(row["safe"] for row in stop),
        "worst_safe_ms": max(safe, default=None),
        "tolerable_faults": sum(row["faults"] for row in tolerated),
        "tolerable_faults_tripped": sum(row["stopped"] for row in tolerated),
        "tripped_before_the_fault": sum(row["early"] for row in rows.values()),
        "load_average": [limit(row["load_average"] for row in rows.values()) for limit in (min, max)],
    }
    if is_guarded:
        return numbers
    return {
        f"plain_{name}": value for name, value in numbers.items() if "tolerable" not in name and "tripped" not in name
    }


def fault_section(rows: dict[str, Row]) -> str:
    """With the guard."""
    found = headline(rows, is_guarded=True)
    over = [
        f"{name} {row['safe_worst_ms']:.0f} ms"
        for name, row in rows.items()
        if row["expect"] == "stop" and (row["safe_worst_ms"] or 0.0) > TWO_PERIODS_MS
    ]
    missed = [
        f"{name} ({row['faults'] - row['safe']} of {row['faults']})"
        for name, row in rows.items()
        if row["expect"] in ("stop", "later", "robot") and row["safe"] < row["faults"]
    ]
    false = [
        f"{name} ({row['stopped']} of {row['faults']})"
        for name, row in rows.items()
        if row["expect"] == "tolerate" and row["stopped"]
    ]
    lines = [
        "## Faults, with the motor guard",
        "A go2 walks (in a quarter of the runs it stands) on a twin at 500 Hz over UDP, its policy at 50 Hz behind the "
        "motor guard. A relay between guard and twin, or a signal, injects one fault a run, at a random time of "
        "walking. Counted at the twin's motors. *Safe* is the time from the first touched frame (or the signal, or the "
        "wrong output) to the damping command after which nothing stiff came. Twin, relay and guard have real-time "
        "priority, the policy's process too (below theirs).",
        f"{found['fault_runs']} runs of {found['fault_rows']} faults: **{found['nonfinite_commands']} non-finite "
        f"commands, {found['bad_commands']} commands outside limits**. Faults that can be seen were stopped in "
        f"{found['visible_faults_stopped']} of {found['visible_faults']} runs, at worst "
        f"**{found['worst_safe_ms']} ms** after the fault (asked: {TWO_PERIODS_MS:.0f} ms, two control periods)"
        + (f"; longer: {', '.join(over)}" if over else "")
        + f". Tolerable faults tripped in {found['tolerable_faults_tripped']} of {found['tolerable_faults']} runs"
        + (f" ({', '.join(false)})" if false else "")
        + f"; {found['tripped_before_the_fault']} runs tripped before their fault."
        + (f" Never safe while we looked: {', '.join(missed)}." if missed else ""),
        _matrix(rows),
        "Bad: non-finite, negative gain, malformed or beyond limits. Peak torque: largest share of a motor's limit in "
        f"the {PEAK_S:g} s after the fault. " + _expected(),
        _load(rows),
    ]
    return "\n\n".join(lines)


def plain_section(rows: dict[str, Row]) -> str:
    """Without."""
    found = headline(rows, is_guarded=False)
    lines = [
        "## The same faults, clip and send",
        "The same policy, twin and relay without monitors and guard: newest state, policy, `np.clip` of its targets to "
        "the joint limits, a thread that repeats the newest target at 500 Hz. The twin refuses numbers that are not "
        "finite and damps by itself when no sound command comes for 100 ms: nothing else makes it "
        "safe here.",
        f"{found['plain_fault_runs']} runs: **{found['plain_nonfinite_commands']} non-finite commands at the motors**; "
        f"faults that can be seen ended in a safe state in {found['plain_visible_faults_stopped']} of "
        f"{found['plain_visible_faults']} runs, at worst after {found['plain_worst_safe_ms']} ms.",
        _matrix(rows, is_guarded=False),
        _load(rows),
    ]
    return "\n\n".join(lines)


def _matrix(rows: dict[str, Row], *, is_guarded: bool = True) -> str:
    head = ["fault", "asked", "runs", "stopped", "safe", "safe median / worst (ms)", "bad", "peak torque", "fell", "by"]
    if not is_guarded:
        head.remove("stopped")
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    for name, row in rows.items():
        found = [f"{by} {count}" for by, count in row["who"].items() if is_guarded]
        found += [f"robot's watchdog {row['by_watchdog']}"] if row["by_watchdog"] else []
        times = "-" if row["safe_worst_ms"] is None else f"{row['safe_median_ms']:.1f} / {row['safe_worst_ms']:.1f}"
        note = f" ({row['note']})" if row["note"] else ""
        cells = [name + note, row["expect"], row["faults"], *([row["stopped"]] if is_guarded else [])]
        cells += [row["safe"], times, sum(row[one] for one in BAD), f"{row['peak_torque']:.2f}", row["fell"]]
        cells.append(", ".join(found) or "-")
        lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    return "\n".join(lines)


def _expected() -> str:
    return "Asked: " + "; ".join(f"*{name}* {text}" for name, text in EXPECTED.items()) + "."


def _load(rows: dict[str, Row]) -> str:
    loads = [row["load_average"] for row in rows.values()]
    late = sum(row["overruns"] for row in rows.values())
    return (
        f"Load average of the machine while it was measured: {min(loads)} to {max(loads)} on two cores; {late} periods "
        f"of the twins ended late in {sum(row['runs'] for row in rows.values())} runs."
    )


def false_trip_section(slow: dict[str, Row], real: dict[str, Row]) -> tuple[dict[str, object], str]:
    """Robot time without faults."""
    rows = {f"{name}, lock-step": row for name, row in slow.items()}
    rows |= timing_rows(real)
    hours = sum(row["robot_s"] for row in rows.values()) / 3600.0
    refused = [name for name, row in rows.items() if row["guard"] == "start pose"]
    paused = [name for name, row in rows.items() if row["false_trip"] and machine_paused(row)]
    false = sum(row["false_trip"] for name, row in rows.items() if name not in (*refused, *paused))
    fell = sum(row["fell"] for row in rows.values())
    numbers = {
        "false_trips": false,
        "trips_machine_paused": len(paused),
        "clean_hours": round(hours, 3),
        "clean_falls": fell,
        "clean_refused_starts": len(refused),
        "clean_bad_commands": sum(row["tap"].get(name, 0) for row in rows.values() for name in BAD),
    }
    head = ("twin", "robot time (s)", "false trips", "fell", "targets clipped (guard)", "bad", "why it ended")
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    for name, row in rows.items():
        clips = ", ".join(f"{what} {count}" for what, count in row["clips"].items()) or "-"
        bad = sum(row["tap"].get(one, 0) for one in BAD)
        why = f"{row['guard']}: {row['reason']}" if row["tripped"] else "time over"
        cells = (
            name,
            round(row["robot_s"]),
            "machine paused" if name in paused else int(row["false_trip"] and name not in refused),
            int(row["fell"]),
            clips,
            bad,
            why,
        )
        lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    text = [
        "## No faults",
        f"{hours:.2f} hours of robot time without faults, walking under commands that change every one to four "
        f"seconds over the whole trained range: **{false} false trips**, {fell} real falls, "
        f"{numbers['clean_bad_commands']} bad commands. A trip counts as false unless the body leaned more than "
        "0.7 rad, or a core of the computer stood still for 20 ms or more around it (a loop of the highest priority on "
        "each core looks), or the twin's own process did not report for that long: policy or robot were really silent "
        f"then, and the guard is right. {len(paused)} trips were such. Runs beside other work, and their trips, stand "
        "below (schedule, beside other work)."
        + (
            f" Not started, because the body sagged too far below the policy's pose: {', '.join(refused)}."
            if refused
            else ""
        ),
        "\n".join(lines),
    ]
    if any("," not in name for name in slow):
        text.append("Rows in lock-step that name no policy were measured with go2_velocity, on earlier code.")
    return numbers, "\n\n".join(text)


def timing_section(real: dict[str, Row]) -> tuple[dict[str, object], str]:
    """The schedule in real time, beside loops that only sleep."""
    row = next(iter(real.values()))
    runs, late, loads = row["each"], row["late_ms"], row["load_averages"]
    sleeper, ordinary = row["sleeper_late_ms"], row["ordinary_sleeper_late_ms"]
    whole = [run for run in runs if not run["tripped"]]
    drift = max((abs(drift_ms(run, 50.0)) for run in whole or runs), default=float("nan"))
    guards = {name: max(run["guard_latency_ms"].get(name, 0.0) for run in runs) for name in _GUARD_LATE}
    ticks, misses = (sum(run[name] for run in runs) for name in ("ticks", "misses"))
    missed = sum(run["guard_latency_ms"].get("missed", 0.0) for run in runs)
    minutes = [run["robot_s"] / 60.0 for run in runs]
    still = [ms for _, _, ms in row["stand_stills"]]
    gaps = [gap["ms"] for run in runs for gap in run.get("twin_gaps", ())]
    numbers = {
        "late_p999_ms": late[2],
        "late_max_ms": late[3],
        "sleeper_late_p999_ms": sleeper[1],
        "sleeper_late_max_ms": sleeper[2],
        "control_misses": misses,
        "drift_ms": round(drift, 2),
        "guard_late_p999_ms": guards["late_p999"],
        "guard_late_max_ms": guards["late_max"],
        "guard_missed": missed,
        "timing_minutes": round(sum(minutes), 2),
        "timing_longest_minutes": round(max(minutes), 2),
        "timing_trips": sum(run["tripped"] for run in runs),
        "timing_load_average": loads,
        "timing_stolen_share": row["stolen_share"],
        "timing_stand_stills": len(still),
        "timing_stand_still_max_ms": max(still, default=0.0),
        "timing_twin_gap_max_ms": round(max(gaps, default=0.0), 1),
    }
    ends = [
        f"after {run['robot_s']:.0f} s: {run['guard']}: {run['reason']} (around it: "
        + (", ".join(f"core {core} stood still for {ms:.0f} ms" for core, ms in run["still"]) or "all cores ran")
        + "".join(f", the twin's process did not report for {ms:.0f} ms" for ms in run.get("robot_still", ()))
        + ")"
        for run in runs
        if run["tripped"]
    ]
    text = [
        "## Schedule",
        f"{sum(minutes):.1f} minutes in real time on a twin over UDP, control at 50 Hz and the guard at 500 Hz on "
        "absolute schedules, in "
        + (
            "one unbroken run. "
            if len(runs) == 1
            else f"{len(runs)} runs (after a trip the next one begins; the longest: "
        )
        + (f"{max(minutes):.1f} minutes). " if len(runs) > 1 else "")
        + f"{misses} of {ticks} control steps missed. The last step of a run ended at most {drift:.1f} ms after its "
        f"due time: {'no drift' if drift < 20.0 + late[3] else '**it drifted**'}. A step took "
        f"{max(run['step_ms'][0] for run in runs):.2f} ms (median), {max(run['step_ms'][1] for run in runs):.2f} ms "
        f"(99.9 %). The guard missed {missed:.0f} points of its schedule.",
        table(
            ("from due time to start, ms", "median", "99 %", "99.9 %", "worst"),
            [
                ("control, 50 Hz", *late),
                ("a loop that only sleeps, 50 Hz, same priority", sleeper[0], "-", sleeper[1], sleeper[2]),
                ("a loop that only sleeps, 50 Hz, ordinary priority", ordinary[0], "-", ordinary[1], ordinary[2]),
                ("guard, 500 Hz (worst of the runs)", *guards.values()),
            ],
        ),
        f"Load average of the machine: {loads[0]} to {loads[1]} on two cores; {100.0 * row['stolen_share']:.2f} % of "
        f"its time was taken by its host. A core stood still {len(still)} times for more than 8 ms, up to "
        f"{max(still, default=0.0):.0f} ms (seen by a loop of the highest priority on each core)"
        + (": the virtual machine was paused, twin and policy with it" if still else "")
        + f". Longest time without a report of the twin: "
        f"{numbers['timing_twin_gap_max_ms']:.0f} ms.",
        "Stopped: " + "; ".join(ends) + "." if ends else "No trip.",
    ]
    return numbers, "\n\n".join(text)


def machine_paused(row: Row) -> bool:
    """Whether a core or the twin stood still for a control period around a trip: silence that was not the policy's."""
    return any(ms >= _PAUSED_MS for ms in [*(ms for _, ms in row.get("still", ())), *row.get("robot_still", ())])


def timing_rows(real: dict[str, Row]) -> dict[str, Row]:
    """The runs in real time as rows of the table without faults."""
    return {f"{name}, real time, {k + 1}": run for name, row in real.items() for k, run in enumerate(row["each"])}
