"""The page of a workspace: the story of every round with its pictures, and every artifact with its parents."""

from __future__ import annotations

from pathlib import Path

from trueup.report.page import Badge, Cell, Link, Page
from trueup.report.workspace.story import Artifact, Chapter, Story

_SHORT = 10  # digits of a hash that are shown


def write_workspace_page(story: Story, path: Path) -> Path:
    """Write the page; links are relative to its folder."""
    page = Page(story.title, story.subtitle)
    for status, text in story.summary:
        page.verdict(status, text)
    page.text(story.lead)
    page.facts(story.facts)
    if story.comparison is not None:
        page.section("Round against round")
        page.table(*story.comparison)
        for figure, caption in story.plots:
            page.plot(figure, caption)
        if story.films:
            page.films(story.films, columns=2)
    for number, chapters in story.rounds.items():
        for chapter in chapters:
            _chapter(page, number, chapter)
    page.section("Artifacts")
    page.text(
        "Every stage with the hash of what it left and of what it was made of. A stage is done again when one of its "
        "parents, or what was asked of it, changes. Hashes are of content: times and places on disk do not count."
    )
    page.table(
        ("artifact", "state", "hash", "made of", "files", "time, s", "CPU, s"),
        [_row(artifact) for artifact in story.artifacts],
    )
    return page.write(path)


def _chapter(page: Page, number: int, chapter: Chapter) -> None:
    page.section(f"Round {number}: {chapter.title}")
    if chapter.verdict:
        page.verdict(chapter.status, chapter.verdict)
    if chapter.text:
        page.text(chapter.text)
    if chapter.facts:
        page.facts(chapter.facts)
    if chapter.films:
        page.films(chapter.films, columns=3 if len(chapter.films) > 2 else 2)
    for columns, rows in chapter.tables:
        page.table(columns, rows)
    for title, (columns, rows) in chapter.details.items():
        page.table(columns, rows, folded=title)
    for figure, caption in chapter.plots:
        page.plot(figure, caption)
    if chapter.links:
        page.links([Link(text, target) for text, target in chapter.links.items()])


def _row(artifact: Artifact) -> tuple[Cell, ...]:
    return (
        Link(artifact.key, f"{artifact.key}/manifest.json", anchor=artifact.key) if artifact.hash else artifact.key,
        Badge(artifact.status, artifact.state),
        artifact.hash[:_SHORT],
        tuple(Link(f"{key} {value[:_SHORT]}", f"#{key}") for key, value in artifact.parents.items()),
        tuple(Link(text, target) for text, target in artifact.files.items()),
        round(artifact.seconds, 1),
        round(artifact.cpu_seconds, 1),
    )
