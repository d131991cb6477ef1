"""manifest.json: which files a bundle has, their sizes and hashes, and a hash of itself. Written last, read first."""

from __future__ import annotations

from pathlib import Path

import msgspec

from trueup._version import __version__
from trueup.core.arrays import sha256_of
from trueup.core.documents import parse_json, read_bytes, to_json
from trueup.core.errors import TrueupError, found_instead
from trueup.core.files import make_folder, write_atomic

MANIFEST, SPEC, NETWORK, GOLDEN = "manifest.json", "spec.json", "policy.onnx", "golden.npz"
SCHEMA = 1
_LIMITS = {MANIFEST: 64_000, SPEC: 8_000_000, NETWORK: 64_000_000, GOLDEN: 32_000_000}


class FileFacts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Size and hash of a file's content."""

    bytes: int
    sha256: str


class BundleManifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`sha256` is of the manifest itself, with "" in its place."""

    schema: int = SCHEMA
    trueup: str = __version__
    opset: int
    operators: tuple[str, ...]
    files: dict[str, FileFacts]
    sha256: str = ""

    def encode(self) -> bytes:
        """The only bytes that this manifest may have on disk."""
        return to_json(self)

    def signed(self) -> BundleManifest:
        """With its own hash."""
        bare = msgspec.structs.replace(self, sha256="")
        return msgspec.structs.replace(bare, sha256=sha256_of([bare.encode()]))


def write_files(folder: Path, files: dict[str, bytes], opset: int, operators: tuple[str, ...]) -> str:
    """Write a bundle's files, the manifest last; returns the bundle's hash."""
    make_folder(folder)
    odd = sorted(path.name for path in folder.iterdir() if path.name not in _LIMITS)
    if odd:
        raise TrueupError(f"holds {odd[0]!r}, so it is no bundle; choose another place", file=folder)
    (folder / MANIFEST).unlink(missing_ok=True)  # from here on, it is no bundle until all is written
    for name, data in files.items():
        if len(data) > _LIMITS[name]:
            raise TrueupError(f"{name} may have {_LIMITS[name]} bytes, this one would have {len(data)}", file=folder)
        write_atomic(folder / name, data)
    facts = {name: FileFacts(bytes=len(data), sha256=sha256_of([data])) for name, data in files.items()}
    manifest = BundleManifest(opset=opset, operators=operators, files=facts).signed().encode()
    write_atomic(folder / MANIFEST, manifest)
    return sha256_of([manifest])


def read_files(folder: Path) -> tuple[BundleManifest, dict[str, bytes], str]:
    """The manifest, the content of every file that fits it, and the bundle's hash; anything else is refused."""
    if not (folder / MANIFEST).is_file():
        found = f"{MANIFEST} is missing: {found_instead(folder)}" if folder.exists() else "no such folder"
        run = folder if (folder / "checkpoints").is_dir() else "RUN"
        raise TrueupError(f"no bundle here: {found}; `trueup export {run} --out walk.bundle` writes one", file=folder)
    data = read_bytes(folder / MANIFEST, _LIMITS[MANIFEST], "manifest")
    manifest = _read(data, folder / MANIFEST)
    names = {path.name for path in folder.iterdir()}
    odd = sorted(names - {MANIFEST, *manifest.files})
    if odd:
        raise TrueupError(f"is no part of this bundle: {odd[0]!r} is not in the manifest", file=folder / odd[0])
    files = {}
    for name, facts in manifest.files.items():
        if name not in names:
            raise TrueupError("is missing from this bundle", file=folder / name)
        files[name] = read_bytes(folder / name, _LIMITS[name], f"{name} of a bundle")
        if len(files[name]) != facts.bytes or sha256_of([files[name]]) != facts.sha256:
            raise TrueupError("the hash does not fit: the file was changed or damaged", file=folder / name)
    return manifest, files, sha256_of([data])


def _read(data: bytes, file: Path) -> BundleManifest:
    manifest = parse_json(data, BundleManifest, "bundle's manifest", file, SCHEMA)
    if set(manifest.files) != {SPEC, NETWORK, GOLDEN}:
        raise TrueupError(f"must list {SPEC}, {NETWORK} and {GOLDEN}", file=file)
    if manifest.signed() != manifest or manifest.encode() != data:
        raise TrueupError("the hash does not fit: the manifest was changed or damaged", file=file)
    return manifest
