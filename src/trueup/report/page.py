"""HTML pages in one file that open without a network: text, tables, verdicts, zoomable plots, films.

Everything a page needs is inside it. The plotting library travels compressed (2 MB instead of 4.8), and
the page forbids itself to fetch anything.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib import import_module
from numbers import Real
from pathlib import Path
from typing import Any, Literal

from trueup._version import __version__
from trueup.core.errors import TrueupError
from trueup.core.files import write_atomic

Status = Literal["good", "warn", "bad", "plain"]
_HERE = Path(__file__).parent
_FILMS = {".mp4": "video/mp4", ".gif": "image/gif"}
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; media-src data:; font-src data:"
)


@dataclass(frozen=True)
class Badge:
    """A verdict in a word or two, coloured by its status; stands alone or in a table's cell."""

    status: Status
    text: str

    def html(self) -> str:
        return f'<span class="badge {self.status}">{escape(self.text)}</span>'


@dataclass(frozen=True)
class Link:
    """A link to a file beside the page, or to a place in it (#NAME); `anchor` makes the link itself such a place."""

    text: str
    target: str
    anchor: str = ""

    def html(self) -> str:
        name = f' id="{escape(self.anchor)}"' if self.anchor else ""
        return f'<a href="{escape(self.target)}"{name}>{escape(self.text)}</a>'


Cell = str | float | Badge | Link | tuple[Link, ...] | None


class Page:
    """A page to which parts are added from top to bottom; `write` makes the file."""

    def __init__(self, title: str, subtitle: str = "") -> None:
        self.title, self.subtitle = title, subtitle
        self._parts: list[str] = []
        self._figures: list[str] = []

    def section(self, title: str) -> None:
        """Start a new section."""
        self._parts.append(f"<h2>{escape(title)}</h2>")

    def text(self, text: str) -> None:
        """Add plain text; an empty line divides paragraphs."""
        self._parts += [f"<p>{escape(part.strip())}</p>" for part in text.split("\n\n") if part.strip()]

    def code(self, text: str, folded: str = "") -> None:
        """Add a command or output, as it is; under a title that opens it, if it is `folded`."""
        shown = f"<pre>{escape(text)}</pre>"
        self._parts.append(_folded(shown, folded) if folded else shown)

    def facts(self, facts: Mapping[str, Cell]) -> None:
        """Add a row of tiles: a name and a value each."""
        tiles = "".join(
            f"<div><dt>{escape(name)}</dt><dd>{_cell_html(value)}</dd></div>" for name, value in facts.items()
        )
        self._parts.append(f'<dl class="facts">{tiles}</dl>')

    def badges(self, *badges: Badge) -> None:
        """Add verdicts side by side."""
        self._parts.append(f'<div class="badges">{"".join(badge.html() for badge in badges)}</div>')

    def links(self, links: Sequence[Link]) -> None:
        """Add ways to other files side by side."""
        self._parts.append(f'<p class="links">{" &nbsp; ".join(link.html() for link in links)}</p>')

    def verdict(self, status: Status, text: str) -> None:
        """Add a line that says how it ended, coloured by its status."""
        self._parts.append(f'<p class="verdict {status}">{escape(text)}</p>')

    def table(
        self, columns: Sequence[str], rows: Iterable[Sequence[Cell]], caption: str = "", *, folded: str = ""
    ) -> None:
        """Add a table, under a title that opens it if it is `folded`; numbers right, to four digits."""
        body = [list(row) for row in rows]
        for row in body:
            if len(row) != len(columns):
                raise ValueError(f"a row has {len(row)} cells for {len(columns)} columns: {row}")
        numbers = [bool(body) and all(isinstance(row[k], Real | None) for row in body) for k in range(len(columns))]
        kinds = [' class="number"' if number else "" for number in numbers]

        def line(tag: str, cells: Sequence[Cell]) -> str:
            parts = zip(cells, kinds, strict=True)
            return f"<tr>{''.join(f'<{tag}{kind}>{_cell_html(cell)}</{tag}>' for cell, kind in parts)}</tr>"

        under = f"<caption>{escape(caption)}</caption>" if caption else ""
        inner = "".join(line("td", row) for row in body)
        table = f"<table>{under}<thead>{line('th', columns)}</thead><tbody>{inner}</tbody></table>"
        shown = f'<div class="table">{table}</div>'
        self._parts.append(_folded(shown, folded) if folded else shown)

    def plot(self, figure: Any, caption: str = "", *, folded: str = "") -> None:
        """Add a plotly figure that can be zoomed; under a title that opens it, if it is `folded`: drawn when opened."""
        text: str = figure.to_json()
        height = json.loads(text)["layout"].get("height", 450)
        name = f"figure-{len(self._figures)}"
        self._figures.append(_packed_script(name, text))
        note = "This plot appears when JavaScript is allowed."
        shown = (
            f'<figure><div class="plot" data-figure="{name}" style="min-height:{int(height)}px">'
            f'<p class="note">{note}</p></div>{_caption(caption)}</figure>'
        )
        self._parts.append(_folded(shown, folded) if folded else shown)

    def film(self, path: str | Path, caption: str = "") -> None:
        """Put a film (.mp4 or .gif) into the page itself."""
        self._parts.append(_film_html(Path(path), caption))

    def films(self, films: Iterable[tuple[str | Path, str]], columns: int = 2) -> None:
        """Put films with their captions side by side."""
        inner = "".join(_film_html(Path(path), caption) for path, caption in films)
        self._parts.append(f'<div class="films" style="--columns:{int(columns)}">{inner}</div>')

    def html(self) -> str:
        """Return the whole page as text."""
        library = _packed_script("plot-library", plotly("offline").get_plotlyjs()) if self._figures else ""
        script = f"<script>{(_HERE / 'page.js').read_text()}</script>" if self._figures else ""
        subtitle = f'<p class="subtitle">{escape(self.subtitle)}</p>' if self.subtitle else ""
        return "\n".join(
            [
                '<!doctype html><html lang="en"><head><meta charset="utf-8">',
                f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
                '<meta name="viewport" content="width=device-width, initial-scale=1">',
                '<link rel="icon" href="data:,">',
                f"<title>{escape(self.title)}</title>",
                f"<style>{(_HERE / 'page.css').read_text()}</style></head>",
                f"<body><main><header><h1>{escape(self.title)}</h1>{subtitle}</header>",
                *self._parts,
                f"<footer>trueup {escape(__version__)}</footer></main>",
                *self._figures,
                library,
                script,
                "</body></html>",
            ]
        )

    def write(self, path: str | Path) -> Path:
        """Write the page, whole or not at all."""
        return write_atomic(path, self.html())


def _folded(shown: str, title: str) -> str:
    return f"<details><summary>{escape(title)}</summary>{shown}</details>"


def _cell_html(cell: Cell) -> str:
    if cell is None:
        return "–"
    if isinstance(cell, Badge | Link):
        return cell.html()
    if isinstance(cell, tuple):
        return "<br>".join(link.html() for link in cell)
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, str):
        return escape(cell)
    if hasattr(cell, "__index__"):  # whole numbers, NumPy's too
        return f"{int(cell):,}".replace(",", "\u2009")
    return f"{float(cell):.4g}"


def _film_html(file: Path, caption: str) -> str:
    kind = _FILMS.get(file.suffix.lower())
    if kind is None:
        raise TrueupError(f"a page shows films of kind {', '.join(_FILMS)}, found {file.suffix!r}", file=file)
    try:
        data = base64.b64encode(file.read_bytes()).decode()
    except OSError as error:
        raise TrueupError(f"the film cannot be read: {error.strerror}", file=file) from None
    source = f'src="data:{kind};base64,{data}"'
    if kind.startswith("video"):
        shown = f"<video controls loop muted autoplay playsinline {source}></video>"
    else:
        shown = f'<img alt="{escape(caption or file.stem)}" {source}>'
    return f"<figure>{shown}{_caption(caption)}</figure>"


def _caption(text: str) -> str:
    return f"<figcaption>{escape(text)}</figcaption>" if text else ""


def _packed_script(name: str, text: str) -> str:
    """Text as a script element that no browser runs; base64 needs no escaping."""
    packed = base64.b64encode(gzip.compress(text.encode(), compresslevel=6, mtime=0)).decode()
    return f'<script type="application/octet-stream" id="{name}">{packed}</script>'


def require_plots() -> None:
    """Raise before long work if its page could not be drawn."""
    plotly("graph_objects")


def plotly(module: str) -> Any:
    """A module of plotly, which is optional and takes half a second: imported when something is drawn."""
    try:
        return import_module(f"plotly.{module}")
    except ImportError:
        raise TrueupError("plots need plotly: `pip install 'trueup[report]'`") from None
