"""Line charts for result pages: small SVG files that need nothing to be shown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from results import RESULTS

from trueup.core.files import write_atomic
from trueup.report.traces import COLOURS

Point = Sequence[float]
_WIDTH, _HEIGHT = 720, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 170, 14, 44
_TICKS = 6
_DASHED = ("#444", 1.2, 'stroke-dasharray="5 4"')


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Points (x, y); curves of one `colour` belong together, faint ones stand behind."""

    name: str
    points: Sequence[Point]
    colour: int
    faint: bool = False


@dataclass(frozen=True, kw_only=True)
class Chart:
    """Curves from (0, 0) on; `level` is a dashed line with a name."""

    x: str
    y: str
    curves: Sequence[Curve]
    level: tuple[str, float] | None = None

    def write(self, name: str) -> str:
        """Write docs/results/NAME.svg and return the line of Markdown that shows it."""
        write_atomic(RESULTS / f"{name}.svg", self.svg())
        return f"![{self.y} against {self.x}]({name}.svg)"

    def svg(self) -> str:
        """The chart as a document."""
        xs = [p[0] for c in self.curves for p in c.points]
        ys = [p[1] for c in self.curves for p in c.points] + ([self.level[1]] if self.level else [])
        x_step, y_step = _step(max(xs)), _step(max(ys))
        x_end, y_end = x_step * math.ceil(max(xs) / x_step), y_step * math.ceil(max(ys) / y_step)

        def place(x: float, y: float) -> tuple[float, float]:
            across = _LEFT + x / x_end * (_WIDTH - _LEFT - _RIGHT)
            return across, _HEIGHT - _BOTTOM - y / y_end * (_HEIGHT - _TOP - _BOTTOM)

        (left, bottom), (right, top) = place(0, 0), place(x_end, y_end)
        out = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" '
            'font-size="12" fill="#444">',
            f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>',
        ]
        for k in range(round(x_end / x_step) + 1):
            at, _ = place(k * x_step, 0)
            out.append(_line([(at, bottom), (at, top)], "#eee", 1.0))
            out.append(f'<text x="{at:.1f}" y="{bottom + 16:.1f}" text-anchor="middle">{k * x_step:g}</text>')
        for k in range(round(y_end / y_step) + 1):
            _, at = place(0, k * y_step)
            out.append(_line([(left, at), (right, at)], "#eee", 1.0))
            out.append(f'<text x="{left - 6:.1f}" y="{at + 4:.1f}" text-anchor="end">{k * y_step:.4g}</text>')
        out.append(f'<text x="{(left + right) / 2:.0f}" y="{_HEIGHT - 8}" text-anchor="middle">{escape(self.x)}</text>')
        middle = (top + bottom) / 2
        out.append(
            f'<text x="14" y="{middle:.0f}" text-anchor="middle" transform="rotate(-90 14 {middle:.0f})">'
            f"{escape(self.y)}</text>"
        )
        if self.level:
            _, at = place(0, self.level[1])
            out.append(_line([(left, at), (right, at)], *_DASHED))
        out += [_drawn(curve, [place(p[0], p[1]) for p in curve.points]) for curve in self.curves]
        legend = [(curve.name, (_colour(curve), 2.2)) for curve in self.curves if not curve.faint]
        if self.level:
            legend.append((self.level[0], _DASHED))
        for k, (name, stroke) in enumerate(legend):
            y = top + 8 + 18 * k
            out.append(_line([(right + 10, y), (right + 30, y)], *stroke))
            out.append(f'<text x="{right + 36:.0f}" y="{y + 4:.0f}">{escape(name)}</text>')
        return "\n".join([*out, "</svg>", ""])


def _drawn(curve: Curve, places: list[tuple[float, float]]) -> str:
    if curve.faint:
        return _line(places, _colour(curve), 1.0, 'opacity="0.35"')
    dots = [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.6" fill="{_colour(curve)}"/>' for x, y in places]
    return "\n".join([_line(places, _colour(curve), 2.2), *dots])


def _colour(curve: Curve) -> str:
    return COLOURS[curve.colour % len(COLOURS)]


def _line(places: Sequence[tuple[float, float]], colour: str, width: float, more: str = "") -> str:
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    return f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{width}" {more}/>'


def _step(end: float) -> float:
    """A round distance between ticks: 1, 2 or 5 times a power of ten."""
    rough = end / _TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * k for k in (1, 2, 5, 10) if power * k >= rough * 0.999)
