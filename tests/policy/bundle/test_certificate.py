"""Certificates: bound to a bundle, sealed against edits, refused with the reason."""

import msgspec
import pytest

from trueup.core.errors import TrueupError
from trueup.policy.bundle.certificate import (
    Certificate,
    GateCheck,
    certificate_path,
    read_certificate,
    require_certificate,
    write_certificate,
)

HASH = "ab" * 32
GOOD = GateCheck(name="parity", state="pass", asked="at most 1e-5", found="3e-7", value=3e-7)
BAD = GateCheck(name="push", state="fail", asked="at least 90 %", found="40 % [31, 50]", remedy="train with pushes")


def make(*checks: GateCheck) -> Certificate:
    return Certificate(
        bundle=HASH,
        name="walk",
        robot="go2",
        task="go2-velocity",
        trials=100,
        seed=0,
        engines=("mujoco",),
        inputs={},
        checks=checks,
    )


def test_a_certificate_comes_back_as_it_was_written(tmp_path):
    path = write_certificate(make(GOOD, BAD), tmp_path / "c.json")
    found = read_certificate(path)
    assert found.checks == (GOOD, BAD)
    assert (found.passed, found.blocking) == (False, (BAD,))


def test_warnings_and_skipped_checks_do_not_block():
    warned = msgspec.structs.replace(BAD, state="warn")
    skipped = msgspec.structs.replace(BAD, state="skipped")
    assert make(GOOD, warned, skipped).passed


@pytest.mark.parametrize(
    ("old", "new"),
    [('"fail"', '"pass"'), ('"trials": 100', '"trials": 900'), (HASH, "cd" * 32), ("at least 90", "at least 10")],
)
def test_an_edit_by_hand_is_refused(tmp_path, old, new):
    path = write_certificate(make(GOOD, BAD), tmp_path / "c.json")
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(TrueupError, match="changed after it was written"):
        read_certificate(path)


def test_what_is_no_certificate_is_refused_by_file(tmp_path):
    path = tmp_path / "c.json"
    with pytest.raises(TrueupError, match=r"c\.json.*no certificate here"):
        read_certificate(path)
    path.write_text('{"bundle": 3}')
    with pytest.raises(TrueupError, match="is not a certificate"):
        read_certificate(path)
    path.write_bytes(b" " * 1_000_001)
    with pytest.raises(TrueupError, match="at most 1000000 bytes"):
        read_certificate(path)


def test_a_bundle_needs_its_own_passed_certificate(tmp_path):
    bundle = tmp_path / "walk.bundle"
    assert certificate_path(bundle) == tmp_path / "walk.bundle.certificate.json"
    with pytest.raises(TrueupError, match=r"has no certificate.*trueup verify"):
        require_certificate(bundle, HASH)
    write_certificate(make(GOOD), certificate_path(bundle))
    assert require_certificate(bundle, HASH).passed
    with pytest.raises(TrueupError, match=r"of another bundle \(abababababab, this one is cdcdcdcdcdcd\)"):
        require_certificate(bundle, "cd" * 32)
    write_certificate(make(GOOD, BAD), certificate_path(bundle))
    with pytest.raises(TrueupError, match="did not pass the gate: push"):
        require_certificate(bundle, HASH)
