"""Untrusted YAML as plain values: no objects, no growing aliases, no duplicate keys; every failure names the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trueup.core.documents import read_bytes
from trueup.core.errors import TrueupError

MAX_BYTES = 128_000
MAX_VALUES = 100_000
MAX_DEPTH = 20
# Python's slice(None), as Isaac Lab's export writes "all joints"; the only tag beyond plain YAML that is understood
_SLICE = "tag:yaml.org,2002:python/object/apply:builtins.slice"


def read_yaml(path: str | Path) -> dict[str, Any]:
    """Read a file whose top level is a mapping of names."""
    import yaml

    file = Path(path)
    data = read_bytes(file, MAX_BYTES, "layout")
    try:
        found = yaml.load(data.decode(), Loader=_loader())
    except RecursionError:
        raise TrueupError("is nested too deeply", file=file) from None
    except Exception as error:  # text that is not UTF-8; a tag on a wrong node may raise anything
        raise TrueupError(f"is not plain YAML: {' '.join(str(error).split())[:300]}", file=file) from None
    _count(found, MAX_VALUES, 0, file)
    if not isinstance(found, dict) or not all(isinstance(key, str) for key in found):
        raise TrueupError("must be a mapping of names", file=file)
    return found


def _loader() -> Any:
    """A SafeLoader that refuses keys given twice and reads slice(None) as None."""
    import yaml

    class PlainLoader(yaml.SafeLoader):  # type: ignore[misc]
        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
            twice = sorted({key for key in keys if keys.count(key) > 1})
            if twice:
                raise yaml.constructor.ConstructorError(None, None, f"key {twice[0]!r} stands twice", node.start_mark)
            return super().construct_mapping(node, deep)

    def everything(loader: Any, node: Any) -> None:
        bounds = loader.construct_sequence(node)
        if any(bound is not None for bound in bounds):
            raise yaml.constructor.ConstructorError(
                None, None, f"slice{tuple(bounds)}: only slice(None) is understood", node.start_mark
            )

    PlainLoader.add_constructor(_SLICE, everything)
    return PlainLoader


def _count(value: object, left: int, depth: int, file: Path) -> int:
    """Count values with aliases written out; an alias of aliases would have no end."""
    if left <= 0 or depth > MAX_DEPTH:
        raise TrueupError(f"holds more than {MAX_VALUES} values or is nested too deeply", file=file)
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    left -= 1
    for item in items:
        left = _count(item, left, depth + 1, file)
    return left
