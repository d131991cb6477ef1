"""Story: content of a workspace's page, as plain data; the loop fills it in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trueup.report.page import Cell, Status


@dataclass(frozen=True, kw_only=True)
class Chapter:
    """Result of one stage of one round.

    films    with their captions, side by side
    tables   columns and rows; details: the same under titles that open them
    links    text -> file, relative to the page
    """

    title: str
    verdict: str = ""
    status: Status = "plain"
    text: str = ""
    facts: Mapping[str, Cell] = field(default_factory=dict)
    films: Sequence[tuple[Path, str]] = ()
    tables: Sequence[tuple[Sequence[str], Sequence[Sequence[Cell]]]] = ()
    details: Mapping[str, tuple[Sequence[str], Sequence[Sequence[Cell]]]] = field(default_factory=dict)
    plots: Sequence[tuple[Any, str]] = ()
    links: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Artifact:
    """One stage in the chain: its hash, those it was made of, and its files."""

    key: str
    state: str
    status: Status
    hash: str
    parents: Mapping[str, str]
    files: Mapping[str, str]
    seconds: float
    cpu_seconds: float
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Story:
    """A workspace from top to bottom.

    lead            what was done, in words
    plots, films    beside the comparison of rounds
    """

    title: str
    subtitle: str
    lead: str
    facts: Mapping[str, Cell]
    summary: Sequence[tuple[Status, str]]
    comparison: tuple[Sequence[str], Sequence[Sequence[Cell]]] | None
    rounds: Mapping[int, Sequence[Chapter]]
    artifacts: Sequence[Artifact]
    plots: Sequence[tuple[Any, str]] = ()
    films: Sequence[tuple[Path, str]] = ()
