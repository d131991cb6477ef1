"""Simulator to policy: runs, checkpoints, resuming, assessment, films, other learners. `tu.train(...)` runs it."""

from trueup.core.verb_package import make_callable

make_callable(__name__, "verbs", "train")
