"""Verbs as Python functions: `tu.calibrate(...)`, `tu.train(...)`, and results with tables and pages.

Python puts an imported package into its parent under its own name, so a function of that name would be there or not,
depending on what was imported before. A module may have its own class, though, and a class may be callable: then the
name is always the package, and calling it always runs the verb. Signature and docstring are the function's.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
C = TypeVar("C")
R = TypeVar("R")


class VerbPackage(ModuleType):
    """A package that runs its verb, a function in one of its modules, when it is called."""

    _verb_home: tuple[str, str]

    def __call__(self, *args: Any, **options: Any) -> Any:
        return _verb(self)(*args, **options)

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(_verb(self))

    @property
    def __doc__(self) -> str | None:  # type: ignore[override]
        return _verb(self).__doc__


def _verb(package: VerbPackage) -> Callable[..., Any]:
    module, name = package._verb_home
    function: Callable[..., Any] = getattr(import_module(f"{package.__name__}.{module}"), name)
    return function


def make_callable(package: str, module: str, function: str) -> None:
    """Make a package callable; called by its `__init__` with its `__name__`, and module and function of the verb."""
    made = sys.modules[package]
    made.__class__ = VerbPackage
    made.__dict__["_verb_home"] = (module, function)


def called_with(config: Callable[P, C], run: Callable[[C], R]) -> Callable[P, R]:
    """The function `run` of a config, called with the config's fields as its parameters."""

    def function(*args: P.args, **options: P.kwargs) -> R:
        return run(config(*args, **options))

    shown = inspect.signature(config).replace(return_annotation=inspect.signature(run).return_annotation)
    function.__signature__, function.__doc__ = shown, run.__doc__ or config.__doc__  # type: ignore[attr-defined]
    return function


class Shown:
    """A result with a table and a page. Both are made above the stages, so the root package is called."""

    def table(self, *, verbose: bool = False) -> str:
        """The result as text; `verbose`: every row, without grouping of like ones."""
        text: str = sys.modules["trueup"].table(self, verbose=verbose)
        return text

    def report(self, path: str | Path) -> Path:
        """Write the page."""
        page: Path = sys.modules["trueup"].report(self, path)
        return page
