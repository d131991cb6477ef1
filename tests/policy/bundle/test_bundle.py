"""A bundle on disk: there and back, and whatever was changed, removed, added or does not fit is refused by name."""

import os
import shutil

import msgspec
import numpy as np
import pytest
from made_bundles import OBSERVATION, edit_spec, make_bundle, make_net, make_passport

from trueup.core.errors import TrueupError
from trueup.policy.bundle.bundle import is_bundle, load_bundle, write_bundle
from trueup.policy.bundle.manifest import GOLDEN, MANIFEST, NETWORK, SPEC, BundleManifest, read_files, write_files
from trueup.policy.graph.policy_onnx import policy_onnx
from trueup.policy.runner import PolicyRunner

FILES = (MANIFEST, SPEC, NETWORK, GOLDEN)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_bundle(tmp_path_factory.mktemp("made") / "toy.bundle", "latent").path


@pytest.fixture
def bundle(made, tmp_path):
    return shutil.copytree(made, tmp_path / "toy.bundle")


@pytest.mark.parametrize("kind", ["plain", "latent", "action"])
def test_a_bundle_acts_as_the_policy_that_was_written(tmp_path, kind):
    net = make_net(kind)
    written = write_bundle(tmp_path / "toy.bundle", make_passport(net), policy_onnx(net))
    back = load_bundle(tmp_path / "toy.bundle")
    assert (back.passport, back.hash) == (written.passport, written.hash)
    assert back.passport.policy.net.kind == kind
    rng, runner = np.random.default_rng(0), PolicyRunner(net, 2)
    ways = [back.runner(2), back.runner(2, "onnxruntime")]
    for _ in range(7):
        obs = rng.normal(size=(2, OBSERVATION.nactor)).astype(np.float32)
        expected = runner.act(obs)
        for way in ways:
            np.testing.assert_allclose(way.act(obs), expected, atol=1e-5)


def test_a_bundle_has_four_files_and_a_hash_of_its_own(bundle, tmp_path):
    assert sorted(path.name for path in bundle.iterdir()) == sorted(FILES)
    first = load_bundle(bundle)
    other = make_bundle(tmp_path / "other.bundle", "latent", torque_limit=(19.0, 20.0, 10.0))
    again = make_bundle(tmp_path / "again.bundle", "latent")
    assert first.hash != other.hash
    assert first.hash == again.hash
    assert is_bundle(bundle)
    assert not is_bundle(tmp_path)


@pytest.mark.parametrize("name", FILES)
def test_any_flipped_bit_is_refused_with_the_files_name(bundle, name):
    rng, whole = np.random.default_rng(len(name)), (bundle / name).read_bytes()
    for _ in range(40):
        data = bytearray(whole)
        place = int(rng.integers(8 * len(data)))
        data[place // 8] ^= 1 << place % 8
        (bundle / name).write_bytes(bytes(data))
        with pytest.raises(TrueupError) as refused:
            load_bundle(bundle)
        assert str(bundle) in str(refused.value)
        if name != MANIFEST:
            assert refused.value.file == str(bundle / name)
    (bundle / name).write_bytes(whole)
    load_bundle(bundle)


@pytest.mark.parametrize("name", FILES)
def test_missing_and_cut_files_are_refused(bundle, name):
    whole = (bundle / name).read_bytes()
    (bundle / name).write_bytes(whole[:-1])
    with pytest.raises(TrueupError, match=name):
        load_bundle(bundle)
    (bundle / name).unlink()
    with pytest.raises(TrueupError, match=f"{name}.*missing|{MANIFEST} is missing"):
        load_bundle(bundle)


def test_files_that_do_not_belong_are_refused(bundle):
    (bundle / "weights.bin").write_bytes(b"x")
    with pytest.raises(TrueupError, match="'weights.bin' is not in the manifest"):
        load_bundle(bundle)


def test_a_file_that_is_a_pipe_or_too_large_is_not_read(bundle):
    (bundle / NETWORK).unlink()
    os.mkfifo(bundle / NETWORK)
    with pytest.raises(TrueupError, match="no regular file"):
        load_bundle(bundle)
    (bundle / NETWORK).unlink()
    with (bundle / NETWORK).open("wb") as file:
        file.truncate(64_000_001)
    with pytest.raises(TrueupError, match="at most"):
        load_bundle(bundle)


def test_what_is_no_bundle_is_refused(tmp_path):
    with pytest.raises(TrueupError, match="no bundle here"):
        load_bundle(tmp_path / "nowhere.bundle")
    with pytest.raises(TrueupError, match="manifest.json is missing"):
        load_bundle(tmp_path)


def resigned(bundle, **changes):
    """Write files in place of others, with hashes that fit."""
    manifest, files, _ = read_files(bundle)
    write_files(
        bundle, files | {name.replace("_", "."): data for name, data in changes.items()}, 17, manifest.operators
    )


def test_another_network_with_right_hashes_no_longer_gives_the_golden_actions(bundle):
    resigned(bundle, policy_onnx=policy_onnx(make_net("latent", seed=1)))
    with pytest.raises(TrueupError, match=r"spec.json: normaliser: mean of column \d+ is"):
        load_bundle(bundle)
    net = make_net("latent")
    net.actor[1][0][0, 0] += 0.1
    resigned(bundle, policy_onnx=policy_onnx(net))
    with pytest.raises(TrueupError, match="no longer give the golden 'walk/action'"):
        load_bundle(bundle)


def test_a_network_of_other_widths_is_refused(bundle):
    resigned(bundle, policy_onnx=policy_onnx(make_net("latent", nobs=30)))
    with pytest.raises(TrueupError, match="has 30 observations, but the passport says 36"):
        load_bundle(bundle)


def test_a_memory_that_the_network_does_not_have_is_refused(bundle):
    edit_spec(bundle, lambda spec: spec["policy"]["net"].update(kind="plain", steps=0), sign=True)
    with pytest.raises(TrueupError, match="says 0 steps of memory"):
        load_bundle(bundle)


def test_a_manifest_with_other_operators_or_schema_is_refused(bundle):
    manifest, files, _ = read_files(bundle)
    write_files(bundle, files, 17, ("Relu",))
    with pytest.raises(TrueupError, match="other operators"):
        load_bundle(bundle)
    newer = msgspec.structs.replace(manifest, schema=2).signed()
    (bundle / MANIFEST).write_bytes(newer.encode())
    with pytest.raises(TrueupError, match="schema 2"):
        load_bundle(bundle)


@pytest.mark.parametrize("text", [b"", b"{}", b"[1]", b"\xff\xfe", b'{"schema": NaN}', b"[" * 100_000])
def test_manifests_that_are_none_are_refused(bundle, text):
    (bundle / MANIFEST).write_bytes(text)
    with pytest.raises(TrueupError, match=MANIFEST):
        load_bundle(bundle)


def test_blanks_in_the_manifest_are_refused_too(bundle):
    data = (bundle / MANIFEST).read_bytes()
    (bundle / MANIFEST).write_bytes(data + b" ")
    with pytest.raises(TrueupError, match="hash does not fit"):
        load_bundle(bundle)
    assert BundleManifest(opset=1, operators=(), files={}).signed().sha256 != ""


@pytest.mark.parametrize(
    ("old", "new"), [(b'"physics_hz": 200.0', b'"physics_hz": 1e999'), (b'"physics_hz": 200.0', b'"physics_hz": NaN')]
)
def test_numbers_that_are_not_finite_are_refused(bundle, old, new):
    spec = (bundle / SPEC).read_bytes()
    assert old in spec
    resigned(bundle, spec_json=spec.replace(old, new))
    with pytest.raises(TrueupError, match="spec.json"):
        load_bundle(bundle)


def test_an_interrupted_write_leaves_no_bundle(bundle, monkeypatch):
    calls = []

    def dies(path, content):
        calls.append(path.name)
        if len(calls) == 2:
            raise KeyboardInterrupt
        path.write_bytes(content)

    monkeypatch.setattr("trueup.policy.bundle.manifest.write_atomic", dies)
    with pytest.raises(KeyboardInterrupt):
        write_bundle(bundle, make_passport(make_net()), policy_onnx(make_net()))
    with pytest.raises(TrueupError, match="manifest.json is missing"):
        load_bundle(bundle)


def test_a_folder_with_other_things_is_not_written_over(tmp_path):
    (tmp_path / "thesis.txt").write_text("x")
    with pytest.raises(TrueupError, match=r"thesis.txt.*choose another place"):
        make_bundle(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_an_edit_is_told_apart_from_a_signed_edit(bundle):
    def stiffer(spec):
        spec["policy"]["kp"][0] = 40.0

    saved = shutil.copytree(bundle, bundle.parent / "saved.bundle")
    edit_spec(saved, stiffer, sign=False)
    with pytest.raises(TrueupError, match="spec.json: the hash does not fit"):
        load_bundle(saved)
    edit_spec(bundle, stiffer, sign=True)
    with pytest.raises(TrueupError, match="golden 'walk/torque'"):
        load_bundle(bundle)
