"""A stage's package that is also its verb: `trueup.calibrate` is a package, and `tu.calibrate(...)` fits.

Python puts an imported package into its parent under its own name, so a function of that name would be there or not,
depending on what was imported before. A module may have its own class, though, and a class may be callable: then the
name is always the package, and calling it always runs the verb. Signature and docstring are the function's. Which
function that is, the root package knows (`trueup.verb`).
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any


class VerbPackage(ModuleType):
    """A package that runs the verb of its name when it is called."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        return _verb(self)(*args, **options)

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(_verb(self))

    @property
    def __doc__(self) -> str | None:  # type: ignore[override]
        return _verb(self).__doc__


def _verb(package: ModuleType) -> Callable[..., Any]:
    root, _, name = package.__name__.partition(".")
    return sys.modules[root].verb(name.rpartition(".")[2])


def make_callable(package: str) -> None:
    """To be called by a package's `__init__` with its `__name__`."""
    sys.modules[package].__class__ = VerbPackage
