"""`trueup train` and `trueup play` as they are called."""

import json

import pytest

from trueup.cli import main


def _run(capsys, *args):
    with pytest.raises(SystemExit) as end:
        main([str(arg) for arg in args])
    out = capsys.readouterr()
    return end.value.code, " ".join((out.out + out.err).split())


@pytest.mark.parametrize("verb", ["train", "play"])
def test_help_says_what_goes_in_and_what_comes_out(capsys, verb):
    code, text = _run(capsys, verb, "--help")
    assert code == 0
    assert text.index("In:") < text.index("Out:")


def test_train_resume_and_what_is_printed(capsys, tmp_path):
    flags = ("--nenv", 16, "--threads", 1, "--film-minutes", 0)
    code, text = _run(capsys, "train", "pendulum-swingup", "--out", tmp_path / "run", "--steps", 512, *flags)
    assert code == 0
    assert "the steps are done: 512 steps" in text
    kept = [json.loads(line) for line in (tmp_path / "run" / "assessments.jsonl").read_text().splitlines()]
    assert [row["steps"] for row in kept] == [512]
    assert "the policy without exploration, 100 episodes" in text
    assert f"score, at most 1 {kept[0]['score']:.3f} falls 0 of 100" in text
    assert f"trueup play {tmp_path / 'run'}" in text
    code, text = _run(capsys, "train", "--resume", tmp_path / "run", "--steps", 1024, "--film-minutes", 0)
    assert code == 0
    assert "1,024 steps" in text
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert (config["task"], config["nenv"]) == ("pendulum-swingup", 16)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("train",), "name a task and --out"),
        (("train", "pendulum-swingup"), "name a task and --out"),
        (("train", "pendulum-swingup", "--out", "RUN"), "--minutes, --steps or --target"),
        (("train", "pendulum", "--out", "RUN", "--steps", "1"), "tasks of robot 'pendulum': pendulum-swingup"),
        (("train", "--resume", "RUN", "--steps", "1"), "no run here"),
        (
            ("train", "pendulum-swingup", "--learner", "sac", "--symmetry", "True", "--out", "RUN"),
            "sac has no option 'symmetry'",
        ),
        (("train", "pendulum-swingup", "--option", "gamma", "--out", "RUN"), "--option takes NAME=VALUE"),
        (("play", "RUN"), "no run here"),
        (("train", "--replay", "RUN/nan"), "no run here"),
    ],
)
def test_what_cannot_work_is_said_in_one_line(capsys, tmp_path, args, message):
    code, text = _run(capsys, *(arg.replace("RUN", str(tmp_path / "none")) for arg in args))
    assert code == 2
    assert message in text


def test_another_learner_with_its_options(capsys, tmp_path):
    options = ("--learner", "sac", "--option", "warmup=64", "batch=16", "hidden=[8,8]")
    flags = ("--threads", 1, "--film-minutes", 0, "--steps", 192)
    code, text = _run(capsys, "train", "pendulum-swingup", "--out", tmp_path / "run", *options, *flags)
    assert code == 0
    assert "temperature (SAC)" in text
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert (config["nenv"], config["learner"]["algorithm"], config["learner"]["hidden"]) == (16, "sac", [8, 8])


def test_a_student_needs_a_teacher_that_exists(capsys, tmp_path):
    args = ("--out", tmp_path / "student", "--steps", 512, "--nenv", 8, "--threads", 1)
    code, text = _run(capsys, "train", "pendulum-swingup", "--teacher", tmp_path / "none", *args)
    assert code == 2
    assert "no run here" in text
    assert not (tmp_path / "student").exists()
