"""What the documentation shows works: TOML examples parse, commands and names exist, the README stays short."""

import re
from pathlib import Path

import pytest

from trueup.core.documents import parse_toml
from trueup.data.mapping import Mapping
from trueup.policy.foreign.toml_layout import LayoutFile
from trueup.robot.spec import RobotSpec

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("page", "kind"), [("robots.md", RobotSpec), ("data.md", Mapping), ("policies.md", LayoutFile)]
)
def test_toml_examples_are_valid(page, kind):
    text = (ROOT / "docs" / page).read_text()
    examples = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    assert examples
    for example in examples:
        parse_toml(example, kind, page)


def test_every_verb_in_the_readme_exists():
    from trueup import cli

    known = {verb.split()[0] for verb in cli._VERBS}
    blocks = re.findall(r"^```\n(.*?)^```", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE)
    shown = set(re.findall(r"^trueup (\w+)", "\n".join(blocks), re.MULTILINE))
    assert shown <= known
    assert len(shown) >= 5


def test_the_readmes_python_runs():
    text = (ROOT / "README.md").read_text()
    code = re.search(r"```python\n(.*?)```", text, re.DOTALL).group(1).replace("seconds=20", "seconds=4")
    scope: dict = {}
    exec(compile(code, "README.md", "exec"), scope)
    assert scope["sim"].nsim == 512
    assert len(scope["log"]) > 500


def test_the_readme_is_at_most_120_lines():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120
