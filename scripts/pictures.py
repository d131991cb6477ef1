"""Make the pictures of README and docs: robots of the zoo, a strip of a walk, bars from docs/results, a page.

    python scripts/pictures.py --run runs/walk --shot page=fit/index.html --film walk_film=walk.mp4

`--run` is a training of `go2-velocity` (the strip), `--shot NAME=PAGE` the top of a report page of trueup (needs
Chromium), `--film NAME=FILE` six frames of a film. What is not named stays as it is; `--only` leaves zoo and plots as
they are too.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import imageio_ffmpeg
import matplotlib as mpl
import numpy as np
from PIL import Image

import trueup as tu
from trueup.train.play.play import open_policy
from trueup.train.play.show import episode_qpos, facing
from trueup.view.camera import CameraCfg, MotionFrames, TrackingCamera
from trueup.view.draw import Painter, visual_model
from trueup.world.drop import DropCfg, drop

mpl.use("svg")
mpl.rcParams |= {"svg.hashsalt": "trueup", "font.size": 11, "axes.spines.top": False, "axes.spines.right": False}
import matplotlib.pyplot as plt  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
OUT, RESULTS = ROOT / "docs" / "pictures", ROOT / "docs" / "results"
COLOURS = 160  # of a palette: a third of the size, no difference to be seen


def frames(model, qpos, sample_hz: float, at: np.ndarray, size: tuple[int, int], camera: CameraCfg) -> list[np.ndarray]:
    """Pictures (height, width, 3) of a motion at the times `at` (s)."""
    fps = 50.0
    with Painter(model, *size, azimuth=camera.azimuth) as painter:
        motion = MotionFrames(painter.model, qpos, sample_hz, fps)
        view = TrackingCamera(motion, camera, aspect=size[0] / size[1], fps=fps)
        chosen = np.minimum(np.round(at * fps).astype(int), motion.frames - 1)
        return [painter.paint(motion.place(k), view.at(k)).copy() for k in chosen]


def save(pictures: list[np.ndarray], name: str) -> None:
    image = Image.fromarray(np.concatenate(pictures, axis=1))
    image.quantize(COLOURS, dither=Image.Dither.NONE).save(OUT / name, optimize=True)


def zoo() -> None:
    """Every robot of the zoo, holding its default pose for a second."""
    for name in tu.zoo_names():
        robot = tu.load_robot(name)
        motion = drop(robot, DropCfg(nsim=1, seconds=1.0))
        model = visual_model(robot)
        save(
            frames(model, motion.qpos, motion.sample_hz, np.array([0.9]), (360, 300), CameraCfg()), f"robot_{name}.png"
        )


def strip(run: Path) -> None:
    """Six moments of a walk at 0.8 m/s, 0.06 s apart."""
    env, policy = open_policy(run)
    qpos = episode_qpos(env, policy, 4.0, command=(0.8, 0.0, 0.0))
    camera = facing(env, CameraCfg(azimuth=90.0, elevation=-10.0), qpos[0])
    model = visual_model(env.sim.scene, env.sim.cfg.model)
    save(frames(model, qpos, 1 / env.control_dt, 2.5 + 0.06 * np.arange(6), (250, 220), camera), "walk.png")


def bars(values: Mapping[str, float], label: str, name: str, *, best: str = "") -> None:
    """Horizontal bars with their numbers, the best in another colour."""
    figure, axes = plt.subplots(figsize=(7.2, 0.5 + 0.42 * len(values)), layout="constrained")
    drawn = axes.barh(
        list(values), list(values.values()), color=["#0f766e" if k == best else "#94a3b8" for k in values]
    )
    axes.bar_label(drawn, fmt="%.3g", padding=4)
    axes.invert_yaxis()
    axes.set_xlabel(label)
    axes.margins(x=0.12)
    figure.savefig(OUT / name, metadata={"Date": None})
    plt.close(figure)


def cells(page: str, title: str, column: int, after: str = "\n") -> dict[str, str]:
    """First column -> another, of the first table below the heading `title` (and the text `after`)."""
    text = ("\n" + (RESULTS / page).read_text()).split(f"\n{title}\n", 1)[1].split(after, 1)[1]
    text = "\n" + text
    table = text[text.index("\n| ") :].strip().split("\n\n", 1)[0].splitlines()[2:]
    split = [[cell.strip(" *") for cell in row.strip("|").split("|")] for row in table]
    return {row[0]: row[column] for row in split if row[column]}


def rows(page: str, title: str, column: int, after: str = "\n") -> dict[str, float]:
    """`cells` as numbers: what stands before a space or a percent sign."""
    return {name: float(cell.split()[0].rstrip("%")) for name, cell in cells(page, title, column, after).items()}


def plots() -> None:
    """Figures of the idea pages, from the tables in docs/results."""
    hung = rows("calibrate_real.md", "## go2 in the air", 1, "Chosen:")
    names = {k.split(" (")[0]: v for k, v in hung.items()}
    bars(names, "open-loop error on seconds 20 to 35, rad", "real_go2.svg", best="hung,kp")
    kp = rows("calibrate_active.md", "# Active excitation: the kp trap", 1)
    bars(kp, "error of kp, median of five twins, %", "kp_trap.svg", best="active")
    ladder = rows("actuators.md", "## Twins `harmonic`", 4)
    bars(ladder, "error on unseen motion, median of three twins, mrad", "ladder.svg", best="unsupervised actuator net")
    moved = rows("transfer.md", "### all twins", 2)
    bars(moved, "velocity error on the hidden twin, m/s", "transfer.svg", best="calibrated posterior")


def film_strip(path: Path, name: str, count: int = 6, width: int = 300) -> None:
    """Frames of a film, evenly spread."""
    read = imageio_ffmpeg.read_frames(str(path))
    size = next(read)["size"]
    found = [np.frombuffer(frame, np.uint8).reshape(size[1], size[0], 3) for frame in read]
    chosen = [found[k] for k in np.linspace(0.1 * len(found), len(found) - 1, count).astype(int)]
    height = round(width * 0.8)
    small = [Image.fromarray(frame).resize((round(height * size[0] / size[1]), height)) for frame in chosen]
    left = (small[0].width - width) // 2
    save([np.asarray(one.crop((left, 0, left + width, height))) for one in small], f"{name}.png")


HEIGHTS = {"loop": 1380}  # of pages whose top is longer


def page(path: Path, name: str) -> None:
    """The top of a report page as a browser shows it, films a second after their start."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        tab = browser.new_page(viewport={"width": 1100, "height": HEIGHTS.get(name, 760)})
        tab.set_default_timeout(300_000)  # a busy machine
        tab.goto(path.resolve().as_uri())
        tab.add_style_tag(content="video::-webkit-media-controls { display: none !important }")
        tab.wait_for_timeout(1500)
        tab.screenshot(path=OUT / f"{name}.png")
        browser.close()
    shot = Image.open(OUT / f"{name}.png").convert("RGB")
    shot.quantize(COLOURS, dither=Image.Dither.NONE).save(OUT / f"{name}.png", optimize=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path)
    parser.add_argument("--shot", nargs="*", default=[], metavar="NAME=PAGE")
    parser.add_argument("--film", nargs="*", default=[], metavar="NAME=FILE")
    parser.add_argument("--only", action="store_true")
    asked = parser.parse_args()
    OUT.mkdir(exist_ok=True)
    if not asked.only:
        plots()
        zoo()
    if asked.run:
        strip(asked.run)
    for name, _, file in (text.partition("=") for text in asked.shot):
        page(Path(file), name)
    for name, _, file in (text.partition("=") for text in asked.film):
        film_strip(Path(file), name)
    print(json.dumps({file.name: file.stat().st_size for file in sorted(OUT.iterdir())}, indent=1))


if __name__ == "__main__":
    main()
