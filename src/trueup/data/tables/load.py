"""What the guarded process runs: one table file read with the library of its format."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np

from trueup.core.errors import TrueupError
from trueup.data.tables.table import Table, check_size


def load(request: dict[str, Any]) -> dict[str, Any]:
    """Read a file with the loader of its kind; whatever the library raises becomes a TrueupError."""
    kind, file = request["kind"], Path(request["file"])
    try:
        loader = getattr(importlib.import_module(f"trueup.data.tables.load_{kind}"), f"load_{kind}")
        table = loader(file, request["wanted"], **request["options"])
    except (TrueupError, MemoryError):
        raise
    except Exception as error:  # the libraries raise a dozen kinds of errors on damaged files
        text = " ".join(str(error).split())[:300]
        raise TrueupError(f"is not a readable {kind} file: {text or type(error).__name__}") from error
    assert isinstance(table, Table)
    check_size(sum(values.size for values in table.columns.values()), request["allowed"], file)
    columns = [(name, values.shape, values.tobytes()) for name, values in table.columns.items()]
    return {"columns": columns, "names": table.names, "timestamps": table.timestamps, "note": table.note}


def unpack(answer: dict[str, Any], file: Path) -> Table:
    """The answer of `load` as a Table again, on the other side of the pipe."""
    columns = {name: np.frombuffer(data).reshape(shape).copy() for name, shape, data in answer["columns"]}
    return Table(
        file=file,
        columns=columns,
        names=tuple(answer["names"]),
        timestamps=tuple(answer["timestamps"]),
        note=answer["note"],
    )
