"""Table files as columns: what is read, and what is refused with file and place."""

from __future__ import annotations

import gzip
import io
import os
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.data.tables import read_table
from trueup.data.tables.read import GUARDS


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


# CSV


def test_csv_numbers_and_lists_of_numbers(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", 'type,t,q\nS,0.5,"[1, 2.5]"\n\nS,1.5,"(3 -4e-1)"\n')
    table = read_table(path)
    assert table.names == ("type", "t", "q")
    assert set(table.columns) == {"t", "q"}, "text columns are left out unless asked for"
    np.testing.assert_array_equal(table.columns["t"], [0.5, 1.5])
    np.testing.assert_array_equal(table.columns["q"], [[1, 2.5], [3, -0.4]])


def test_csv_gzip_byte_order_mark_tabs_and_no_header(tmp_path: Path) -> None:
    packed = write(tmp_path, "a.csv.gz", gzip.compress("\ufefft,q\n1,2\n".encode()))
    assert read_table(packed, ["t"]).columns["t"].tolist() == [1.0]
    tabs = write(tmp_path, "a.tsv", "t\tq\n1\t2\n")
    assert read_table(tabs, ["q"]).columns["q"].tolist() == [2.0]
    bare = write(tmp_path, "b.csv", "1;2\n3;4\n")
    assert read_table(bare, ["1"], delimiter=";", header=False).columns["1"].tolist() == [2.0, 4.0]


def test_csv_of_several_batches_keeps_every_row(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=(5000, 2))
    path = write(tmp_path, "a.csv", "a,b\n" + "\n".join(f"{x!r},{y!r}" for x, y in values.tolist()))
    table = read_table(path)
    np.testing.assert_array_equal(np.stack([table.columns["a"], table.columns["b"]], 1), values)


def test_csv_lists_in_any_notation_are_the_same_numbers(tmp_path: Path) -> None:
    cells = ["[1, -2e3]", "(1 -2e3)", "[1,-2e3] ", "[ 1.0 , -2000 ]"]
    path = write(tmp_path, "a.csv", "q\n" + "\n".join(f'"{cell}"' for cell in cells * 3))
    np.testing.assert_array_equal(read_table(path).columns["q"], [[1.0, -2000.0]] * 12)


@pytest.mark.parametrize("cell", ["[1 2 3]\n[4]", "[1] [2]", "[1 2", "1 2]", "[1 ; 2]", "[1 [2]", "[1 2_0]"])
def test_csv_lists_that_only_add_up_are_refused(tmp_path: Path, cell: str) -> None:
    rows = ["q", '"[1 2]"', *(f'"{part}"' for part in cell.split("\n"))]
    with pytest.raises(TrueupError) as caught:
        read_table(write(tmp_path, "a.csv", "\n".join(rows)), ["q"])
    assert caught.value.place == "line 3, column 'q'"


@pytest.mark.parametrize(
    ("content", "place", "words"),
    [
        ("a,b\n1,2\n3\n", "line 3", "1 cells where the first line has 2"),
        ("a,b\n1,2\n3,x\n", "line 3, column 'b'", "'x' is no number"),
        ("a,b\n1,2\n3,1_0\n", "line 3, column 'b'", "'1_0' is no number"),
        ('a,b\n1,"[1, 2]"\n3,"[1]"\n', "line 3, column 'b'", "lists 1 numbers"),
        ('a,b\n1,"[1, 2]"\n3,4\n', "line 3, column 'b'", "no list of numbers"),
        (b"a,b\n1,2\x00\n", "line 2", "NUL"),
        ("a,b\n1,2\n".encode("utf-16"), "line 1", "UTF-16"),
        (b"a,b\n1,\xb0\n", "line 2", "not UTF-8"),
        ("a,b\n" + "1" * 2_000_000, "line 2", "field limit"),
        ('a,b\n1,"2\n', "line 2", "not valid CSV"),
        ('a,b\n1,"' + "2" * 200_000 + '"\n', "line 2", "field limit"),
    ],
)
def test_csv_faults_are_refused_with_their_line(tmp_path: Path, content: str | bytes, place: str, words: str) -> None:
    path = write(tmp_path, "a.csv", content)
    with pytest.raises(TrueupError, match=words) as caught:
        read_table(path, ["b"])
    assert caught.value.file == str(path)
    assert caught.value.place == place


def test_csv_fault_far_down_is_given_its_exact_line(tmp_path: Path) -> None:
    rows = ["a"] + ["1"] * 3000 + ["", "oops"] + ["1"] * 3000
    with pytest.raises(TrueupError) as caught:
        read_table(write(tmp_path, "a.csv", "\n".join(rows)), ["a"])
    assert caught.value.place == "line 3003, column 'a'"


def test_missing_column_lists_near_names(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "jpos0,jpos1,jvel0,kp\n1,2,3,4\n")
    with pytest.raises(TrueupError, match=r"no column 'jpos2' \(near: jpos[01], jpos[01]"):
        read_table(path, ["jpos2"])
    with pytest.raises(TrueupError, match=r"it has: jpos0, jpos1, jvel0, kp"):
        read_table(path, ["zzzzzzzz"])


def test_column_named_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TrueupError, match="2 columns named 'a'"):
        read_table(write(tmp_path, "a.csv", "a,a\n1,2\n"), ["a"])


def test_too_many_columns_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TrueupError, match="at most 10000"):
        read_table(write(tmp_path, "a.csv", ",".join(str(k) for k in range(20_000))))


@pytest.mark.parametrize(
    "content", [b"", gzip.compress(b"a\n1\n" * 1000, mtime=0)[:-30], b"not gzip at all", b"\x1f\x8b"]
)
def test_broken_gzip_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(TrueupError):
        read_table(write(tmp_path, "a.csv.gz", content))


@pytest.mark.medium
@pytest.mark.parametrize("row", [b"0.0000000000000001,0,0\n", b"0,0,0\n", b"\n"])
def test_gzip_bomb_is_refused(tmp_path: Path, row: bytes) -> None:
    path = write(tmp_path, "a.csv.gz", gzip.compress(b"a,b,c\n" + row * (12_000_000 // len(row))))
    assert path.stat().st_size < 160_000
    with pytest.raises(TrueupError, match="unfolds"):
        read_table(path, ["b"])


@pytest.mark.medium
@pytest.mark.parametrize(
    ("header", "row", "rows"),
    [
        (b"a", b"0\n", 990_000),
        (b"a", b"0.1234567\n", 990_000),
        (b"a,b", b" ,0\n", 490_000),
        (b"a", b"[0]\n", 490_000),
        (b"a", b"[0 0 0 0]\n", 190_000),
        (b"a", b'"[0, 0, 0] "\n', 240_000),
    ],
)
def test_most_that_a_small_file_may_unfold_to_is_read_within_two_seconds(
    tmp_path: Path, header: bytes, row: bytes, rows: int
) -> None:
    path = write(tmp_path, "a.csv.gz", gzip.compress(header + b"\n" + row * rows, 9))
    assert path.stat().st_size < 500_000
    start = time.process_time()
    table = read_table(path)
    assert time.process_time() - start < 2.0
    assert len(table) == rows


# NPZ


def npz(folder: Path, **arrays: Any) -> Path:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return write(folder, "a.npz", buffer.getvalue())


def npz_member(folder: Path, content: bytes, compression: int = zipfile.ZIP_STORED) -> Path:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        archive.writestr("q.npy", content)
    return write(folder, "a.npz", buffer.getvalue())


def npy(array: np.ndarray[Any, Any], shape: str | None = None) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    data = buffer.getvalue()
    return data.replace(str(array.shape).encode(), shape.encode()) if shape else data


def test_npz_keeps_numbers_of_any_kind_and_order(tmp_path: Path) -> None:
    q = np.arange(12.0).reshape(4, 3)
    path = npz(tmp_path, q=np.asfortranarray(q), n=np.arange(4, dtype=">i2"), name=np.array("text"))
    table = read_table(path)
    assert set(table.columns) == {"q", "n"}
    np.testing.assert_array_equal(table.columns["q"], q)
    np.testing.assert_array_equal(table.columns["n"], np.arange(4.0))


def test_npz_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    path = npz(tmp_path, q=np.zeros(12_000_000))
    assert path.stat().st_size < 200_000
    start = time.process_time()
    with pytest.raises(TrueupError, match="91 MiB"):
        read_table(path, ["q"])
    assert time.process_time() - start < 0.5


def test_npz_objects_are_never_read(tmp_path: Path) -> None:
    path = npz(tmp_path, q=np.array([{"a": 1}], dtype=object))
    with pytest.raises(TrueupError, match="never read") as caught:
        read_table(path, ["q"])
    assert caught.value.place == "array 'q'"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (npy(np.zeros(4), "(40000000000000000000000,)"), "cannot be read"),
        (npy(np.zeros(4), "(9,)"), "expected 72 bytes got 32"),
        (npy(np.zeros(4), "(900,)"), "expected 7200 bytes"),
        (npy(np.zeros(4), "(-4,)"), "cannot be read"),
        (npy(np.zeros((2, 2, 2))), "one axis"),
        (npy(np.zeros(4))[:-8], "expected 32 bytes got 24"),
        (b"\x93NUMPY\x09\x00rest", "format version"),
        (b"\x93NUMPY\x01\x00\xff\xff" + b"(" * 9000, "header"),
        (b"garbage", "header"),
    ],
)
def test_npz_false_headers_are_refused(tmp_path: Path, content: bytes, words: str) -> None:
    with pytest.raises(TrueupError, match=words) as caught:
        read_table(npz_member(tmp_path, content), ["q"])
    assert caught.value.place == "array 'q'"


def test_npz_packed_by_another_method_is_read(tmp_path: Path) -> None:
    packed = npz_member(tmp_path, npy(np.arange(4.0)), zipfile.ZIP_BZIP2)
    assert read_table(packed, ["q"]).columns["q"].tolist() == [0.0, 1.0, 2.0, 3.0]


# Parquet


def parquet(folder: Path, columns: dict[str, Any], **options: Any) -> Path:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    path = folder / "a.parquet"
    pq.write_table(pa.table(columns), path, **options)
    return path


def test_parquet_numbers_lists_dates_and_nulls(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    path = parquet(
        tmp_path,
        {
            "n": pa.array([1, None, 3]),
            "q": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]],
            "t": pa.array([0, 5, 10], pa.timestamp("ms")),
            "text": ["a", "b", "c"],
            "a.b": [1.0, 2.0, 3.0],
        },
    )
    table = read_table(path)
    np.testing.assert_array_equal(table.columns["n"], [1, np.nan, 3])
    np.testing.assert_array_equal(table.columns["q"], [[1, 2], [3, 4], [5, 6]])
    np.testing.assert_array_equal(table.columns["t"], [0, 5e6, 1e7])
    np.testing.assert_array_equal(table.columns["a.b"], [1, 2, 3])
    assert table.timestamps == ("t",)
    assert "text" in table.names
    assert "text" not in table.columns


def test_parquet_text_and_ragged_lists_are_refused(tmp_path: Path) -> None:
    path = parquet(tmp_path, {"text": ["a", "b"], "q": [[1.0], [1.0, 2.0]]})
    with pytest.raises(TrueupError, match="string instead of numbers") as caught:
        read_table(path, ["text"])
    assert caught.value.place == "column 'text'"
    with pytest.raises(TrueupError, match="differ in length"):
        read_table(path, ["q"])


def test_parquet_bomb_is_refused_from_its_metadata(tmp_path: Path) -> None:
    path = parquet(tmp_path, {"q": np.zeros(12_000_000)})
    assert path.stat().st_size < 100_000
    with pytest.raises(TrueupError, match="91 MiB"):
        read_table(path, ["q"])


# HDF5


def hdf5(folder: Path, fill: Any) -> Path:
    h5py = pytest.importorskip("h5py")
    path = folder / "a.h5"
    with h5py.File(path, "w") as file:
        file["t"] = np.arange(4.0)
        fill(file, h5py)
    return path


def test_hdf5_groups_filters_and_kinds(tmp_path: Path) -> None:
    def fill(file: Any, h5py: Any) -> None:
        file.create_dataset("arm/q", data=np.ones((4, 3)), compression="gzip", shuffle=True)
        file.create_dataset("arm/v", data=np.ones((4, 3), np.float32), compression="lzf", fletcher32=True)
        file["name"] = "text"

    path = hdf5(tmp_path, fill)
    assert set(read_table(path).columns) == {"t", "arm/q", "arm/v"}
    asked = read_table(path, ["/arm/q"])
    np.testing.assert_array_equal(asked.columns["/arm/q"], np.ones((4, 3)))


def _external_link(file: Any, h5py: Any) -> None:
    file["q"] = h5py.ExternalLink("other.h5", "/t")


def _soft_link(file: Any, h5py: Any) -> None:
    file["q"] = h5py.SoftLink("/t")


def _external_storage(file: Any, h5py: Any) -> None:
    file.create_dataset("q", (4,), "f8", external=[("secret.bin", 0, 32)])


def _virtual(file: Any, h5py: Any) -> None:
    layout = h5py.VirtualLayout((4,), "f8")
    layout[:] = h5py.VirtualSource("other.h5", "t", shape=(4,))
    file.create_virtual_dataset("q", layout)


def _strange_filter(file: Any, h5py: Any) -> None:
    file.create_dataset("q", data=np.arange(4), scaleoffset=8, chunks=(4,))


def _huge_shape(file: Any, h5py: Any) -> None:
    file.create_dataset("q", (10**12,), "f8", chunks=(1000,))


def _huge_chunk(file: Any, h5py: Any) -> None:
    file.create_dataset("q", (1,), "f8", chunks=(400_000_000,), maxshape=(None,))


def _text(file: Any, h5py: Any) -> None:
    file["q"] = "text"


def _circle(file: Any, h5py: Any) -> None:
    file.create_group("q")
    for name in "abc":
        file[f"q/{name}"] = file["/"]


@pytest.mark.parametrize(
    ("fill", "words"),
    [
        (_external_link, "another file"),
        (_soft_link, "soft link"),
        (_external_storage, "another file"),
        (_virtual, "virtual"),
        (_strange_filter, "filter 6"),
        (_huge_shape, "declares 1000000000000 numbers"),
        (_huge_chunk, "chunks"),
        (_text, "instead of numbers"),
        (_circle, "no column 'q'"),
    ],
)
def test_hdf5_that_leads_elsewhere_or_asks_too_much_is_refused(tmp_path: Path, fill: Any, words: str) -> None:
    write(tmp_path, "secret.bin", b"\0" * 32)
    path = hdf5(tmp_path, fill)
    with pytest.raises(TrueupError, match=words) as caught:
        read_table(path, ["q"])
    assert caught.value.file == str(path)
    assert "q" in (caught.value.place or "")


# any format


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".npz", ".parquet", ".h5"])
def test_empty_absent_and_irregular_files_are_refused(tmp_path: Path, ending: str) -> None:
    with pytest.raises(TrueupError):
        read_table(write(tmp_path, f"a{ending}", b""))
    with pytest.raises(TrueupError, match="does not exist"):
        read_table(tmp_path / f"absent{ending}")
    os.mkfifo(tmp_path / f"pipe{ending}")
    with pytest.raises(TrueupError, match="no regular file"):
        read_table(tmp_path / f"pipe{ending}")


def test_unknown_ending_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(TrueupError, match=r"\.parquet"):
        read_table(write(tmp_path, "a.xlsx", b""))


# the guarded process


def test_reading_goes_on_after_the_reading_process_died(tmp_path: Path) -> None:
    path = hdf5(tmp_path, lambda file, h5py: None)
    read_table(path)
    server = GUARDS["h5py"]._server
    assert server is not None
    server.kill()
    server.wait()
    assert len(read_table(path)) == 4
