"""Functions of the user: FILE.py:FUNCTION or MODULE:FUNCTION. Only a function that is named is run."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from trueup.core.errors import TrueupError, did_you_mean


def is_own_code(reference: str) -> bool:
    """Whether a reference has the form of a function of the user's, in a file or in a module that is installed."""
    place, _, function = reference.rpartition(":")
    if not function.isidentifier() or place.endswith(".py"):
        return function.isidentifier()
    parts = place.split(".")
    return all(part.isidentifier() for part in parts) and importlib.util.find_spec(parts[0]) is not None


def own_function(reference: str) -> Callable[..., Any]:
    """Load the function that FILE.py:FUNCTION or MODULE:FUNCTION names."""
    place, _, function = reference.rpartition(":")
    is_file = place.endswith(".py")
    if is_file and not Path(place).is_file():
        raise TrueupError("there is no such file to take a function from", file=place)
    try:
        module = _from_file(Path(place)) if is_file else importlib.import_module(place)
    except (Exception, SystemExit) as error:  # the user's code: any exception is possible
        hint = "" if is_file else f"; is it installed here? A file is named with its ending: {place}.py:FUNCTION"
        raise TrueupError(f"cannot be loaded: {type(error).__name__}: {error}{hint}", file=place) from error
    found = getattr(module, function, None)
    if not callable(found):
        known = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        raise TrueupError(f"{place} has no function {function!r}{did_you_mean(function, known)}", file=place)
    return found


def _from_file(path: Path) -> ModuleType:
    name = f"trueup_own_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # its dataclasses look up their module here
    spec.loader.exec_module(module)
    return module
