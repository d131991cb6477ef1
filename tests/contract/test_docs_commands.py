"""Every `trueup ...` command that the documentation shows is understood by the command line's parser; none is run."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from functools import cache
from pathlib import Path

import pytest
import tyro

from trueup import cli

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("examples/*.md")])
_FENCE = re.compile(r"^( *)```.*?\n(.*?)^\1```", re.DOTALL | re.MULTILINE)
_INLINE = re.compile(
    r"`(trueup (?:(?! \| )[^`\n])*(?:\n(?:(?! \| )[^`\n])+)?)`"
)  # at most one line break, no table's cells


def shown_commands(text: str) -> list[str]:
    """Commands in fenced blocks: a line that begins with `trueup`, or with a prompt and `trueup`, up to its end."""
    blocks = "\n".join(block for _, block in _FENCE.findall(text)).replace("\\\n", " ")
    return re.findall(r"^[ \t]*(?:\$ )?(trueup [^\n]*)", blocks, re.MULTILINE)


def mentioned_commands(text: str) -> list[str]:
    """Commands in running text, which may leave out what the reader can fill in."""
    return [re.sub(r"\s+", " ", one) for one in _INLINE.findall(_FENCE.sub("", text))]


def split_verb(command: str) -> tuple[str, list[str]]:
    """`trueup data check log.mcap` -> ("data check", ["log.mcap"]); a verb that does not exist is an error."""
    words = shlex.split(command, comments=True)[1:]
    for count in (2, 1):
        if " ".join(words[:count]) in cli._VERBS:
            return " ".join(words[:count]), words[count:]
    raise ValueError(f"no such verb: {command}")


def parse(command: str) -> None:
    """Raises SystemExit with code 2 where the parser refuses the command."""
    verb, words = split_verb(command)
    tyro.cli(cli._load(cli._VERBS[verb][0]), args=words, prog=f"trueup {verb}", config=cli._CONFIG)


@cache
def flags(verb: str) -> frozenset[str]:
    """Flags that the verb's own help lists."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
        parse(f"trueup {verb} --help")
    named = re.findall(r"^[│ ]{1,2}((?:-\w, )?--.*?)(?:  |│|$)", said.getvalue(), re.MULTILINE)
    return frozenset(flag for part in named for flag in re.findall(r"--[\w-]+", part))


def being_built() -> set[str]:
    """Verbs whose row in the README says that they are being built: nobody can run these yet."""
    rows = [line for line in (ROOT / "README.md").read_text().splitlines() if line.startswith("| `")]
    return {re.search(r"`(\w+)`", row)[1] for row in rows if row.rstrip(" |").endswith("being built")}


def is_general(command: str) -> bool:
    """`trueup --help`, `trueup VERB`, `trueup data check|import`: about the command line, not a command."""
    words = command.split()[1:]
    return not words or words[0].startswith("-") or words[0].isupper() or words[0] == "..."


def of(find, page: Path) -> list[str]:
    found = [one for one in find(page.read_text()) if not is_general(one)]
    return [one for one in found if one.split()[1] not in being_built()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_in_blocks_are_accepted_whole(page, capsys):
    wrong = {}
    for command in of(shown_commands, page):
        try:
            parse(command)
        except ValueError as error:
            wrong[command] = str(error)
        except SystemExit as error:
            said = capsys.readouterr()
            if error.code:
                wrong[command] = said.out + said.err
    assert not wrong, "\n".join(f"{command}\n{why}" for command, why in wrong.items())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_in_running_text_name_verbs_and_flags_that_exist(page):
    wrong = []
    for command in of(mentioned_commands, page):
        head, *others = re.sub(r"(\w)\|\w+(\|\w+)*", r"\1", command).split(" --")
        if split_group(head):
            continue
        try:
            verb, _ = split_verb(head.replace("'", ""))
        except ValueError:
            wrong.append(command)
            continue
        asked = {f"--{re.split(r'[ =|/]', other)[0]}" for other in others}
        wrong += [f"{command}: {flag}" for flag in sorted(asked - flags(verb) - {"--help"})]
    assert not wrong, "\n".join(wrong)


def split_group(head: str) -> bool:
    """`trueup robot`: a group of verbs, named as a whole."""
    words = head.split()[1:]
    return len(words) == 1 and words[0] in cli._GROUPS


def test_the_finders_see_what_a_reader_sees():
    text = (
        "Say `trueup sim\ngo2`.\n```\n$ trueup record go2 \\\n  --out a.mcap   # done\ntrueup: an error\nelse\n```\n"
        "1. so:\n   ```\n   trueup doctor\n   ```\n"
    )
    assert shown_commands(text) == ["trueup record go2    --out a.mcap   # done", "trueup doctor"]
    assert mentioned_commands(text) == ["trueup sim go2"]
    assert split_verb("trueup calibrate load a.mcap # b") == ("calibrate load", ["a.mcap"])


@pytest.mark.parametrize(
    "command", ["trueup record go2 --sekonds 3 --out a.mcap", "trueup calibrate a.mcap --out fit", "trueup wave go2"]
)
def test_a_wrong_command_is_refused(command, capsys):
    with pytest.raises((SystemExit, ValueError)):
        parse(command)
    capsys.readouterr()


def test_every_verb_is_shown_somewhere():
    shown = {split_verb(one)[0] for page in PAGES for one in of(shown_commands, page)}
    assert shown == set(cli._VERBS)


def test_the_flags_of_a_verb_are_found():
    assert {"--out", "--minutes", "--no-posterior"} <= flags("train")
    assert "--params" not in flags("doctor")
