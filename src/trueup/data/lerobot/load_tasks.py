"""meta/tasks.parquet in the guarded process: whole numbers and the text that belongs to each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

_MOST = 20_000  # tasks
_LONGEST = 2000  # characters
_THRIFT_LIMIT = 16 << 20


def load_tasks(request: dict[str, Any]) -> list[tuple[int, str]]:
    """(task_index, task) of every row; pandas keeps the texts as the table's index, under a name of its own."""
    import pyarrow.parquet as pq
    import pyarrow.types as types

    from trueup.core.errors import TrueupError

    opened = pq.ParquetFile(
        Path(request["file"]),
        memory_map=False,
        pre_buffer=False,
        thrift_string_size_limit=_THRIFT_LIMIT,
        thrift_container_size_limit=_THRIFT_LIMIT,
        page_checksum_verification=True,
    )
    schema = opened.schema_arrow
    texts = [field.name for field in schema if types.is_string(field.type) or types.is_large_string(field.type)]
    if "task_index" not in schema.names or not types.is_integer(schema.field("task_index").type) or len(texts) != 1:
        raise TrueupError(f"has no task_index and text: columns are {', '.join(schema.names)[:300]}")
    if opened.metadata.num_rows > _MOST:
        raise TrueupError(f"holds {opened.metadata.num_rows} tasks; at most {_MOST} are read")
    table = opened.read(columns=["task_index", texts[0]], use_threads=False)
    rows = zip(table.column("task_index").to_pylist(), table.column(texts[0]).to_pylist(), strict=True)
    return [(index, text[:_LONGEST]) for index, text in rows if index is not None and text is not None]
