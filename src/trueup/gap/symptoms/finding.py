"""Symptom and SymptomTable: what was measured, against what, its usual cause and the change that mends it, as data."""

from __future__ import annotations

from pathlib import Path

import msgspec

from trueup.core.documents import read_json, write_json
from trueup.gap.symptoms.changes import TaskChange

FILE, SCHEMA = "symptoms.json", 1


class Symptom(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One thing that goes wrong on the robot.

    value      measured, the worst or the median over the runs as the rule says; `runs`: of each run
    bound      beyond which it is told, and `bound_from`: where that comes from
    below      told where the value is below the bound
    change     of training, in words; `changes` the same as data for the task file
    """

    name: str
    quantity: str
    unit: str
    value: float
    bound: float
    bound_from: str
    below: bool = False
    runs: dict[str, float] = {}
    evidence: str
    cause: str
    change: str
    changes: tuple[TaskChange, ...] = ()


class Looked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A quantity that was looked at: value and bound, None where it could not be had."""

    name: str
    quantity: str
    unit: str
    value: float | None
    bound: float | None
    told: bool


class SymptomTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The table of `trueup symptoms`.

    symptoms   told, in the order of the rules; empty when the robot does as its simulation
    looked     every quantity, so that "nothing" is not mistaken for "not looked at"
    reference  simulated robots that bounds come from; 0: the robot's limits alone
    task       that the changes are changes of; `task_file`: FILE.py:FUNCTION for `trueup train`, empty without symptoms
    """

    schema: int = SCHEMA
    robot: str
    runs: tuple[str, ...]
    symptoms: tuple[Symptom, ...]
    looked: tuple[Looked, ...]
    reference: int
    task: str = ""
    task_file: str = ""
    notes: tuple[str, ...] = ()

    def __contains__(self, name: object) -> bool:
        return any(one.name == name for one in self.symptoms)

    @property
    def command(self) -> str:
        """The next command; empty without symptoms."""
        return f"trueup train {self.task_file} --start RUN" if self.task_file else ""


def write_table(table: SymptomTable, folder: str | Path) -> Path:
    """Write symptoms.json."""
    return write_json(Path(folder) / FILE, table)


def read_table(path: str | Path) -> SymptomTable:
    """Read a table from its folder or file; every failure names the file."""
    return read_json(path, SymptomTable, "table of symptoms", name=FILE, schema=SCHEMA)
