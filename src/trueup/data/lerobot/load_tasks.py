"""meta/tasks.parquet in the guarded process: task indices and their texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

_MOST = 20_000  # tasks
_LONGEST = 2000  # characters


def load_tasks(request: dict[str, Any]) -> list[tuple[int, str]]:
    """(task_index, task) of every row; pandas keeps the texts as the table's index, under a name of its own."""
    import pyarrow.types as types

    from trueup.core.errors import TrueupError
    from trueup.data.tables.load_parquet import open_parquet

    opened = open_parquet(Path(request["file"]))
    schema = opened.schema_arrow
    texts = [field.name for field in schema if types.is_string(field.type) or types.is_large_string(field.type)]
    if "task_index" not in schema.names or not types.is_integer(schema.field("task_index").type) or len(texts) != 1:
        raise TrueupError(f"has no task_index and text: columns are {', '.join(schema.names)[:300]}")
    if opened.metadata.num_rows > _MOST:
        raise TrueupError(f"holds {opened.metadata.num_rows} tasks; at most {_MOST} are read")
    table = opened.read(columns=["task_index", texts[0]], use_threads=False)
    rows = zip(table.column("task_index").to_pylist(), table.column(texts[0]).to_pylist(), strict=True)
    return [(index, text[:_LONGEST]) for index, text in rows if index is not None and text is not None]
