"""A stage's package that is also its verb: `trueup.calibrate` is a package, and `tu.calibrate(...)` fits.

Python puts an imported package into its parent under its own name, so a function of that name would be there or not,
depending on what was imported before. A module may have its own class, though, and a class may be callable: then the
name is always the package, and calling it always runs the verb. The function is looked up by name in `trueup.face` when
it is called, as an entry point is; no folder imports upward.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

FACE = "trueup.face"


class VerbPackage(ModuleType):
    """A package that runs the function of its name in `trueup.face` when it is called."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        return getattr(import_module(FACE), self.__name__.rpartition(".")[2])(*args, **options)


def make_callable(package: str) -> None:
    """To be called by a package's `__init__` with its `__name__`."""
    sys.modules[package].__class__ = VerbPackage
