"""Functions that the user brings: FILE.py:FUNCTION or MODULE:FUNCTION. Naming one is what allows it to run."""

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
    module = _from_file(Path(place)) if place.endswith(".py") else _from_module(place)
    found = getattr(module, function, None)
    if not callable(found):
        known = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        raise TrueupError(f"{place} has no function {function!r}{did_you_mean(function, known)}", file=place)
    return found


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise TrueupError("there is no such file to take a function from", file=path)
    name = f"trueup_own_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # its dataclasses look for their module here
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # the user's code: anything may come
        raise TrueupError(f"cannot be loaded: {type(error).__name__}: {error}", file=path) from error
    return module


def _from_module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:  # the user's code: anything may come
        raise TrueupError(
            f"the module {name!r} cannot be loaded ({type(error).__name__}: {error}); is it installed here? "
            f"A file is named with its ending: {name.split('.')[-1]}.py:FUNCTION"
        ) from error
