"""Table files of others (CSV, NPZ, Parquet, HDF5) as named columns of numbers; every file is untrusted."""

from trueup.data.tables.read import SUFFIXES, read_table, table_format
from trueup.data.tables.table import Table

__all__ = ["SUFFIXES", "Table", "read_table", "table_format"]
