"""Films of motions: qpos over time in, .mp4 or .gif out. Models and pictures are in `draw`, cameras in `camera`.

A film is written under a temporary name and renamed at the end: a file is complete or absent.
"""

from __future__ import annotations

import math
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import mujoco
import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError
from trueup.core.files import make_folder, writing
from trueup.view.camera import CameraCfg, MotionFrames, TrackingCamera
from trueup.view.draw import HEIGHT, WIDTH, Painter, Pixels, dress, visual_model

__all__ = ["CameraCfg", "dress", "film", "find_ffmpeg", "visual_model"]

# one palette for the whole gif, made from what moves
_GIF_PALETTE = "split[a][b];[a]palettegen=stats_mode=diff[p];[b][p]paletteuse=dither=bayer:bayer_scale=4"
_ENCODERS: dict[str, tuple[str, ...]] = {
    ".mp4": (
        *("-c:v", "libx264", "-preset", "veryfast", "-crf", "21"),
        *("-pix_fmt", "yuv420p", "-movflags", "+faststart"),
    ),
    ".gif": ("-filter_complex", _GIF_PALETTE, "-loop", "0"),
}


def film(
    model: mujoco.MjModel,
    qpos: NDArray[np.float64],
    path: str | Path,
    *,
    sample_hz: float,
    fps: float = 30.0,
    width: int = WIDTH,
    height: int = HEIGHT,
    camera: CameraCfg | None = None,
    progress: Callable[[float], None] | None = None,
) -> Path:
    """Film `qpos` (T, nq), sampled at `sample_hz`, in real time.

    The suffix of `path` says which kind of film. Odd sizes grow by one pixel, as codecs need even ones.
    `progress` is told the fraction done.
    """
    path = Path(path)
    if path.suffix.lower() not in _ENCODERS:
        raise TrueupError(f"unknown kind of film {path.suffix!r}; known: {', '.join(_ENCODERS)}", file=path)
    _check(model, qpos, fps, sample_hz)
    width, height = width + width % 2, height + height % 2
    cfg = camera or CameraCfg()
    with Painter(model, width, height, azimuth=cfg.azimuth) as painter:
        motion = MotionFrames(painter.model, qpos, sample_hz, fps)
        view = TrackingCamera(motion, cfg, aspect=width / height, fps=fps)
        with _encoder(path, width, height, fps) as send:
            for frame in range(motion.frames):
                send(painter.paint(motion.place(frame), view.at(frame)))
                if progress is not None:
                    progress((frame + 1) / motion.frames)
    return path


def find_ffmpeg() -> str:
    """Return the path of the ffmpeg that comes with `imageio-ffmpeg` (IMAGEIO_FFMPEG_EXE names another)."""
    try:
        library = import_module("imageio_ffmpeg")  # optional: only films need it
    except ImportError:
        raise TrueupError("films need ffmpeg: `pip install 'trueup[report]'` brings one") from None
    try:
        return str(library.get_ffmpeg_exe())
    except RuntimeError as error:
        raise TrueupError(f"imageio-ffmpeg finds no ffmpeg ({error}); install one or set IMAGEIO_FFMPEG_EXE") from None


def _check(model: mujoco.MjModel, qpos: NDArray[np.float64], fps: float, sample_hz: float) -> None:
    if qpos.ndim != 2 or qpos.shape[1] != model.nq or len(qpos) == 0:
        raise TrueupError(f"a film needs qpos of shape (T, {model.nq}) with T > 0, found {qpos.shape}")
    for name, rate in (("fps", fps), ("sample_hz", sample_hz)):
        if not 0 < rate < math.inf:
            raise TrueupError(f"{name} must be a positive number, found {rate}")
    bad = np.flatnonzero(~np.isfinite(qpos).all(axis=1))
    if len(bad):
        raise TrueupError(f"qpos is not finite at sample {bad[0]} ({bad[0] / sample_hz:.3f} s): cannot be drawn")


@contextmanager
def _encoder(path: Path, width: int, height: int, fps: float) -> Iterator[Callable[[Pixels], object]]:
    """Give a function that takes one picture at a time; the file appears at the end, or nothing stays."""
    source = ("-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", f"{fps:g}", "-i", "-")
    suffix = path.suffix.lower()
    executable = find_ffmpeg()
    make_folder(path.parent)
    with writing(path):
        handle, part = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}.", suffix=suffix)
    os.close(handle)
    command = [executable, "-y", "-loglevel", "error", *source, "-an", *_ENCODERS[suffix], part]
    # its own session: Ctrl-C reaches us only, and we end it
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    )
    assert process.stdin is not None
    pipe = process.stdin
    try:
        yield lambda pixels: pipe.write(pixels.tobytes())
        _finish(process, path)
        with writing(path):
            os.chmod(part, 0o644)
            os.replace(part, path)
    except BrokenPipeError:
        _finish(process, path)
        raise
    finally:
        process.kill()
        process.communicate()
        Path(part).unlink(missing_ok=True)


def _finish(process: subprocess.Popen[bytes], path: Path) -> None:
    _, complaint = process.communicate()
    if process.returncode != 0:
        lines = complaint.decode(errors="replace").strip().splitlines()
        raise TrueupError(f"ffmpeg could not write the film: {lines[-1] if lines else process.returncode}", file=path)
