"""What a training shows while it runs, and how it ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from trueup.core.errors import TrueupError
from trueup.report.run import write_run_page
from trueup.report.terminal import LINE_EVERY_S, clock, print_origins, progress_bar
from trueup.train import verbs as train
from trueup.train.config import RunCfg
from trueup.train.folder import RunFolder
from trueup.train.play import verbs as play
from trueup.train.play.assess import Assessment
from trueup.train.train import assess_end, replay_dump, run_origins
from trueup.train.trainer import Outcome, Progress

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
_FLAGGED = 0.1  # of simulations, above which a red flag is shown


def run_train(verb: train.TrainVerb) -> int:
    """Train, show, say where everything is; 130 if it was stopped."""
    console = Console()
    if verb.replay is not None:
        found = replay_dump(Path(verb.replay))
        console.print("\n".join(found) or "every number is finite this time")
        return int(bool(found))
    if verb.resume is None and verb.out is None:
        raise TrueupError("name a task and --out, or --resume RUN")

    def on_start(cfg: RunCfg) -> None:
        if cfg.params is not None:
            print_origins(run_origins(cfg), console)

    out = train.run_folder(verb)
    with training_display(out, console) as show:
        outcome = train.run(verb, show, on_start).outcome
    assessed = None
    if outcome.reason != "interrupted":
        with console.status("assessing the policy without exploration ..."):
            assessed = assess_end(RunFolder(out))
    write_run_page(out)
    print_outcome(out, outcome, assessed, console)
    return 130 if outcome.reason == "interrupted" else 0


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
    """Where the run stands, as a table under a bar."""
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


def print_outcome(out: Path, outcome: Outcome, assessed: Assessment | None, console: Console) -> None:
    """Say how it ended, what the policy is worth, and what to do next."""
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
    console.print(f"run    {out}   page   {out / 'index.html'}", soft_wrap=True)
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
