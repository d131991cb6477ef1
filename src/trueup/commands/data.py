"""`trueup data check|import|convert|recover`: logs that can be trusted."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from trueup.core.outputs import OutEither, OutFile


@dataclass(frozen=True, kw_only=True)
class CheckVerb:
    """Check a log: clock, units, joint order, command pairing, sensors, limits, excitation.

    In: a log (MCAP, rosbag2, or a table with its mapping). Out: findings, worst first, each with evidence, consequence
    and fix; exit code 1 if the log is not usable.
    """

    log: tyro.conf.Positional[Path]
    """Log file."""
    robot: str | None = None
    """Compare with this robot too: joint order, sign, limits."""
    mapping: str | None = None
    """For CSV, NPZ, Parquet, HDF5: a shipped mapping's name or your own TOML."""
    page: OutFile | None = None
    """Also write a self-contained HTML page with traces and findings."""
    json: bool = False
    """Print one JSON object."""


@dataclass(frozen=True, kw_only=True)
class ImportVerb:
    """Import tables (CSV, NPZ, Parquet, HDF5) as a log.

    In: files or a folder, and a mapping that says which column is which. Out: an MCAP log (a folder of them for a
    folder of recordings).
    """

    files: tyro.conf.Positional[tuple[Path, ...]]
    """Files of one recording, or a folder of recordings."""
    mapping: str
    """A shipped mapping's name (go2_air, so101) or your own TOML."""
    out: OutEither
    """File to write (.mcap, .parquet, .csv, .npz), or a folder for several recordings."""


@dataclass(frozen=True, kw_only=True)
class ConvertVerb:
    """Convert a log between MCAP, Parquet, CSV and NPZ without loss.

    In: a log. Out: the same log in the format that the suffix says.
    """

    source: tyro.conf.Positional[Path]
    """Log to read."""
    out: tyro.conf.Positional[OutFile]
    """File to write."""


@dataclass(frozen=True, kw_only=True)
class RecoverVerb:
    """Save what can be read of a cut or damaged MCAP log.

    In: a damaged file. Out: a clean, indexed copy, and how much was lost.
    """

    log: tyro.conf.Positional[Path]
    """Damaged file; it is left as it is."""
    out: OutFile | None = None
    """Copy to write (default: beside it)."""


DataVerb = (
    Annotated[CheckVerb, tyro.conf.subcommand("check")]
    | Annotated[ImportVerb, tyro.conf.subcommand("import")]
    | Annotated[ConvertVerb, tyro.conf.subcommand("convert")]
    | Annotated[RecoverVerb, tyro.conf.subcommand("recover")]
)


def run(verb: CheckVerb | ImportVerb | ConvertVerb | RecoverVerb) -> int:
    """Do what was asked and print it."""
    if isinstance(verb, CheckVerb):
        return _check(verb)
    if isinstance(verb, ImportVerb):
        return _import(verb)
    from trueup.report.log import print_done

    if isinstance(verb, ConvertVerb):
        from trueup.data.files import read_log, write_log_file

        log = read_log(verb.source)
        print_done(write_log_file(log, verb.out), log)
        return 0
    from trueup.data.mcap.recover import recover
    from trueup.report.log import print_recovery

    print_recovery(recover(verb.log, verb.out))
    return 0


def _check(verb: CheckVerb) -> int:
    from trueup.data.files import read_log
    from trueup.face import check_log
    from trueup.report.log import print_report, write_log_page

    log = read_log(verb.log, verb.mapping)
    report = check_log(log, verb.robot)
    print_report(log, report, as_json=verb.json)
    if verb.page is not None:
        write_log_page(log, report, verb.page, title=verb.log.name)
    return 0 if report.usable else 1


def _import(verb: ImportVerb) -> int:
    from trueup.core.errors import TrueupError
    from trueup.data.files import write_log_file
    from trueup.data.import_table import import_logs
    from trueup.data.mapping import find_mapping
    from trueup.report.log import print_done

    found = list(import_logs(verb.files, find_mapping(verb.mapping)))
    if len(found) == 1:
        print_done(write_log_file(found[0][1], verb.out), found[0][1])
        return 0
    if verb.out.suffix:
        raise TrueupError(f"{len(found)} recordings were found: --out must be a folder", file=verb.out)
    for name, log in found:
        print_done(write_log_file(log, verb.out / f"{name}.mcap"), log)
    return 0
