"""Output of a training: live progress, result, and the page of its run with curves and films."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from trueup.core.errors import TrueupError
from trueup.core.stop import command_began
from trueup.report.page import Cell, Page
from trueup.report.terminal import LINE_EVERY_S, clock, print_origins, progress_bar
from trueup.report.traces import COLOURS, chart, line_style
from trueup.report.training.parts import episode_parts, reward_terms
from trueup.tasks.load import load_task
from trueup.tasks.task import Task, error_label, error_metric
from trueup.train import verbs as train
from trueup.train.config import RunCfg
from trueup.train.folder import RunFolder
from trueup.train.play import verbs as play
from trueup.train.play.assess import Assessment
from trueup.train.play.episode import EPISODE_FILE, load_episode
from trueup.train.train import assess_end, replay_dump, run_origins
from trueup.train.trainer import Progress, TrainingOutcome

# name in the metrics -> how it is called, and its format; whatever the task does not have is left out
_SHOWN = {
    "reward": ("reward per step", "{:.4f}"),
    "episode_return": ("return of an episode", "{:.2f}"),
    "velocity_error": ("velocity error, m/s", "{:.3f}"),
    "settled_distance": ("settled distance, m", "{:.3f}"),
    "object_distance": ("object distance, m", "{:.3f}"),
    "pose_error": ("pose error, rad", "{:.3f}"),
    "turn_error": ("turning error, rad/s", "{:.3f}"),
    "terminated": ("falls per step", "{:.5f}"),
    "terrain/level": ("terrain level", "{:.2f}"),
    "adr/log_width": ("ADR, mean log width", "{:.3f}"),
    "actuator_outside": ("actuator net outside its fitted range", "{:.1%}"),
    "std": ("standard deviation of actions", "{:.3f}"),
    "kl": ("divergence per update", "{:.4f}"),
    "learning_rate": ("learning rate", "{:.1e}"),
    "alpha": ("temperature (SAC)", "{:.4f}"),
}
_REASONS = {
    "steps": "the steps are done",
    "minutes": "the time is up",
    "target": "the target is reached",
    "interrupted": "stopped by you, saved",
}
Row = Mapping[str, float]
PAGE = "index.html"
_POINTS = 400  # of a curve
_MILLION = 1e6
_FLAGGED = 0.1  # of simulations, above which a red flag is shown


def run_train(verb: train.TrainVerb) -> int:
    """Train with live progress and print the result's paths; 130 if stopped."""
    console, began = Console(), command_began()
    if verb.replay is not None:
        found = replay_dump(Path(verb.replay))
        console.print("\n".join(found) or "every number is finite this time")
        return int(bool(found))
    if verb.resume is None and verb.out is None:
        raise TrueupError("name a task and --out, or --from RUN and --out, or --resume RUN")

    def on_start(cfg: RunCfg) -> None:
        if cfg.params is not None:
            print_origins(run_origins(cfg), console)

    out = train.run_folder(verb)
    with training_display(out, console) as show:
        outcome = train.run(verb, show, on_start, began=began).outcome
    assessed = None
    if outcome.reason != "interrupted":
        with console.status("assessing the policy without exploration ..."):
            assessed = assess_end(RunFolder(out))
    _write_page(out, console)
    print_outcome(out, outcome, assessed, console)
    if outcome.reason == "minutes" and verb.resume is None:
        console.print(f"everything took {clock(time.monotonic() - began)} of {clock(60 * (verb.minutes or 0.0))}")
    return 130 if outcome.reason == "interrupted" else 0


def _write_page(out: Path, console: Console) -> None:
    """Write the page if plots can be drawn; a run does not need it."""
    try:
        write_run_page(out)
    except TrueupError as error:
        console.print(f"no page: {error}", style="yellow", markup=False, soft_wrap=True)


def run_play(verb: play.PlayVerb) -> int:
    """Film, or serve until Ctrl-C."""
    console = Console()
    if verb.film is None:
        play.run(verb, lambda url: console.print(f"page   {url}   (Ctrl-C ends)", soft_wrap=True))
        return 0
    with progress_bar("filming", console) as progress:
        film = play.run(verb, progress=progress)
    console.print(f"film   {film}", soft_wrap=True)
    return 0


@contextmanager
def training_display(out: Path, console: Console) -> Iterator[Callable[[Progress], None]]:
    """A live table on a terminal; elsewhere a line every ten seconds."""
    if not console.is_terminal:
        yield _lines(console)
        return
    with Live(Text("measuring this machine ..."), console=console, refresh_per_second=4, transient=True) as live:
        yield lambda progress: live.update(progress_table(out, progress))


def progress_table(out: Path, progress: Progress) -> Group:
    """State of the run, as a table under a bar."""
    left = "" if progress.left_s is None else f"   left {clock(progress.left_s)}"
    table = Table.grid(padding=(0, 2))
    table.add_row("run", f"{out}   (Ctrl-C saves and ends; --resume {out} continues)")
    table.add_row("steps", f"{progress.steps:,}   {progress.steps_per_s:,.0f} a second")
    table.add_row("time", f"{clock(progress.elapsed_s)}{left}")
    for _, label, value in _shown(progress.metrics):
        table.add_row(label, value)
    for name, share in _flags(progress.metrics):
        table.add_row(f"[yellow]{name}[/yellow]", f"{share:.0%} of simulations")
    return Group(ProgressBar(total=1.0, completed=progress.fraction or 0.0, width=60), table)


def print_outcome(out: Path, outcome: TrainingOutcome, assessed: Assessment | None, console: Console) -> None:
    """Print how the training ended, the policy's score, and the next command."""
    console.print(
        f"{_REASONS[outcome.reason]}: {outcome.steps:,} steps in {clock(outcome.elapsed_s)}, "
        f"{outcome.iteration} iterations"
    )
    if outcome.metrics:
        console.print("at the end of training, exploring:")
    for _, label, value in _shown(outcome.metrics):
        console.print(f"  {label:32s} {value}")
    if assessed is not None:  # may be worse than with exploration: a policy that needs its noise stands still without
        console.print(f"the policy without exploration, {assessed.episodes} episodes of {assessed.seconds:g} s:")
        if assessed.error is not None:
            console.print(f"  {assessed.error_label:32s} {assessed.error:.3f}")
        console.print(f"  {'score, at most 1':32s} {assessed.score:.3f}")
        console.print(f"  {'falls':32s} {assessed.falls} of {assessed.episodes}")
        for name, share in _flags(assessed.metrics):
            console.print(f"  [yellow]{name:32s} {share:.0%} of the time[/yellow]")
    page = f"   page   {out / PAGE}" if (out / PAGE).exists() else ""
    console.print(f"run    {out}{page}", soft_wrap=True)
    console.print(f"next   trueup play {out}   or   trueup train --resume {out} --minutes ...", soft_wrap=True)


def _shown(metrics: Mapping[str, float]) -> list[tuple[str, str, str]]:
    """(name, label, number) of the metrics that are shown, of those that the task has."""
    return [(name, label, form.format(metrics[name])) for name, (label, form) in _SHOWN.items() if name in metrics]


def _flags(metrics: Mapping[str, float]) -> list[tuple[str, float]]:
    return [(k[5:], share) for k, share in sorted(metrics.items()) if k.startswith("flag/") and share > _FLAGGED]


def _lines(console: Console) -> Callable[[Progress], None]:
    last = [-LINE_EVERY_S]

    def show(progress: Progress) -> None:
        if progress.elapsed_s - last[0] < LINE_EVERY_S:
            return
        last[0] = progress.elapsed_s
        done = "" if progress.fraction is None else f"{100 * progress.fraction:.0f} %  "
        left = "" if progress.left_s is None else f"left {clock(progress.left_s)}  "
        numbers = "  ".join(f"{name} {value}" for name, _, value in _shown(progress.metrics))
        steps = f"{progress.steps:,} steps  {progress.steps_per_s:,.0f}/s"
        console.print(f"{clock(progress.elapsed_s)}  {done}{left}{steps}  {numbers}", soft_wrap=True)

    return show


# --- the page ---
def write_run_page(run: str | Path) -> Path:
    """Write RUN/index.html from the run's records so far."""
    folder = RunFolder(run)
    cfg, rows = folder.config(), folder.read_metrics()
    task = load_task(cfg.task, cfg.robot)
    page = Page(f"Training {cfg.task}", f"seed {cfg.seed}, {cfg.nenv} simulations")
    if rows:
        assessed = folder.read_assessments()
        _facts(page, rows[-1], assessed, task)
        rows = rows[:: max(1, len(rows) // _POINTS)]
        _learning(page, rows, assessed, task)
        reward_terms(page, rows, task)
        _curriculum(page, rows, task)
    if (folder.path / EPISODE_FILE).exists():
        episode_parts(page, load_episode(folder.path / EPISODE_FILE))
    films = sorted(folder.films.glob("*.mp4"))
    if films:
        page.section("What it looks like")
        page.film(films[-1], f"after {int(films[-1].stem) / _MILLION:.2f} M steps")
    return page.write(folder.path / PAGE)


def _facts(page: Page, last: Row, assessed: Sequence[Row], task: Task) -> None:
    facts: dict[str, Cell] = {
        "control steps": f"{last['steps'] / _MILLION:.2f} M",
        "time": f"{last['elapsed_s'] / 60:.1f} min",
        "steps a second": f"{last['steps'] / last['elapsed_s']:,.0f}",
        "reward per step": last["reward"],
    }
    name, _, unit = error_label(task).partition(", ")
    metric = error_metric(task) or ""
    if metric in last:
        facts[f"{name}, exploring"] = f"{last[metric]:.3f} {unit}"
    if assessed:
        newest = assessed[-1]
        found = "" if newest["error"] is None else f"{newest['error']:.3f} {unit}, "
        facts["assessed"] = f"{found}{newest['falls']:.0f} falls"
    page.facts(facts)


def _learning(page: Page, rows: Sequence[Row], assessed: Sequence[Row], task: Task) -> None:
    page.section("Learning")
    page.plot(_curves(rows, {"reward": "reward per step"}, "reward per step"))
    metric = error_metric(task) or ""
    if any(metric in row for row in rows):
        figure = _curves(rows, {metric: "exploring, in ranges that grow"}, error_label(task))
        if assessed:
            figure.add_scatter(
                x=[row["steps"] / _MILLION for row in assessed],
                y=[row["error"] for row in assessed],
                text=[f"{row['falls']:.0f} falls" for row in assessed],
                mode="markers+text",
                textposition="top center",
                name="assessed: no randomisation, no exploration",
                marker={"color": COLOURS[2], "size": 9},
            )
        page.plot(figure)
    page.plot(_curves(rows, {"terminated": "falls per step and simulation"}, "falls per step"))


def _curriculum(page: Page, rows: Sequence[Row], task: Task) -> None:
    """Levels of terrain, ranges that grow, and red flags, of those that the run has."""
    if kinds := {key: key[8:] for key in rows[-1] if key.startswith("terrain/")}:
        page.section("Terrain")
        page.plot(_curves(rows, kinds, "mean level"), "Level of the curriculum, over all and by kind of ground.")
    if names := [key[4:-4] for key in rows[-1] if key.startswith("adr/") and key.endswith("/low")]:
        page.section("Ranges that grow by success (ADR)")
        figure = _curves(rows, {}, "boundaries, share of the full range")
        for k, name in enumerate(names):
            low, width = task.randomize[name].low, max(task.randomize[name].high - task.randomize[name].low, 1e-12)
            for side in ("low", "high"):
                shares = [(row[f"adr/{name}/{side}"] - low) / width for row in rows]
                _add(figure, rows, shares, k, name=name, legendgroup=name, showlegend=side == "low")
        page.plot(figure, "0 and 1 are the ends of the task's own range.")
    if flags := {key: key[5:] for key in rows[-1] if key.startswith("flag/")}:
        page.section("Red flags")
        page.plot(_curves(rows, flags, "share of simulations"), "Shuffling, hopping, torque at its limit, idling.")


def _curves(rows: Sequence[Row], names: Mapping[str, str], unit: str) -> Any:
    """Metrics over the training, by the labels they have in the legend."""
    y = {"title": {"text": unit}, "automargin": True}
    figure = chart(320, {"title": {"text": "million control steps"}}, y, t=30)
    figure.update_layout(showlegend=True)
    for k, (key, label) in enumerate(names.items()):
        known = [row for row in rows if key in row]
        _add(figure, known, [row[key] for row in known], k, name=label)
    return figure


def _add(figure: Any, rows: Sequence[Row], values: Sequence[float], k: int, **options: Any) -> None:
    figure.add_scatter(x=[row["steps"] / _MILLION for row in rows], y=values, line=line_style(k), **options)
