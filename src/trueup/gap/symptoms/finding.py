"""Symptom and SymptomTable: measured value, bound, usual cause and the change that removes it, as data."""

from __future__ import annotations

from pathlib import Path

import msgspec

from trueup.core.documents import read_json, write_json
from trueup.gap.symptoms.changes import TaskChange

FILE, SCHEMA = "symptoms.json", 1


class Symptom(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A quantity of the robot's runs beyond its bound.

    value      measured, the worst or the median over the runs as the rule says; `runs`: of each run
    bound      beyond which it is reported; `bound_from`: the bound's origin
    below      reported where the value is below the bound
    change     of training, as text; `changes` the same as data for the task file
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
    """A checked quantity: value and bound, None where not available."""

    name: str
    quantity: str
    unit: str
    value: float | None
    bound: float | None
    told: bool


class SymptomTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The table of `trueup symptoms`.

    symptoms   in the order of the rules; empty when the robot behaves as its simulation
    looked     every quantity, so that "no symptom" is not mistaken for "not checked"
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
