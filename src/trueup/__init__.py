"""trueup makes a simulator agree with a robot, trains in it, proves the policy and runs it safely.

Everything the command line does is a function here with the same name. Importing `trueup` itself is light: each name is
loaded from the module that `__init__.pyi` gives it when it is first used.
"""

from __future__ import annotations

import re
from importlib import import_module

from trueup._version import __version__ as __version__
from trueup.core.errors import TrueupError as TrueupError

with open(__file__ + "i") as _stub:
    # name -> module, and name there
    _HOME = {
        name: (module, there) for module, there, name in re.findall(r"from (\S+) import (\w+) as (\w+)", _stub.read())
    }
# packages that are also verbs, see `core.verb_package`
_VERBS = ("calibrate", "deploy", "doctor", "evaluate", "gap", "loop", "record", "report", "train", "verify")
__all__ = sorted({*_HOME, *_VERBS})


def __getattr__(name: str) -> object:
    if name in _VERBS:
        return import_module(f"trueup.{name}")
    if name in _HOME:
        module, there = _HOME[name]
        return getattr(import_module(module), there)
    raise AttributeError(f"module 'trueup' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
