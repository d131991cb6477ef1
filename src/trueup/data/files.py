"""Reads any log file by its name: our MCAP, foreign bags, tables exported by us or read through a mapping."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from trueup.core.errors import TrueupError
from trueup.data.log import Log
from trueup.data.tables.read import SUFFIXES, table_format

Logs = Sequence[Log | str | Path] | Log | str | Path


def read_log(path: str | Path, mapping: str | Path | None = None) -> Log:
    """Read one log; a table that trueup did not write needs a mapping (a shipped name or a TOML file)."""
    file = Path(path)
    if not file.exists():
        raise TrueupError("no such file; `trueup record ROBOT --out LOG.mcap` makes a log", file=file)
    if mapping is not None:
        from trueup.data.import_table import import_log
        from trueup.data.mapping import find_mapping

        return import_log([file], find_mapping(mapping))
    if file.is_dir() or file.suffix in (".mcap", ".db3"):
        from trueup.data.mcap.read import read_mcap

        return read_mcap(file)
    if table_format(file) is not None:
        from trueup.data.export import read_export

        return read_export(file)
    raise TrueupError(f"not a log: known are .mcap, rosbag2 folders, .db3, {', '.join(SUFFIXES)}", file=file)


def read_logs(logs: Logs, mapping: str | Path | None = None) -> list[Log]:
    """Logs, or files of them, one or several, as a list of logs."""
    given = [logs] if isinstance(logs, Log | str | Path) else logs
    return [log if isinstance(log, Log) else read_log(log, mapping) for log in given]


def write_log_file(log: Log, path: str | Path) -> Path:
    """Write one log in the format of the suffix."""
    file = Path(path)
    if file.suffix == ".mcap":
        from trueup.data.mcap.write import write_log

        return write_log(log, file)
    from trueup.data.export import export_log

    return export_log(log, file)
