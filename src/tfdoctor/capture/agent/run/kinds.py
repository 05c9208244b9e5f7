"""The kinds of calls and of work: values of recordings (`tfdoctor.terms.kinds.RunCall` and `RunWork`)."""

from __future__ import annotations

SCRIPT, FIT, EPOCH, STEP, BETWEEN = "script", "fit", "epoch", "step", "between"
TRAIN = "train"
TRACE, FUNCTION, TEST = "trace", "function", "test"
EVALUATE, PREDICT, COMPILE, BUILD = "evaluate", "predict", "compile", "build"
ADAPT, SAVE, PROFILER = "adapt", "save", "profiler"

# Calls within which a tf.function is one of its own; in the others it is a part of them.
OPEN = frozenset((SCRIPT, FIT, EPOCH, BETWEEN))
# Calls that are told one by one.
ALONE = frozenset((FIT, EPOCH, TRAIN, EVALUATE, PREDICT, COMPILE, BUILD, ADAPT, SAVE))

IMPORTING, BUILDING, TRACING, SAVING = "importing", "building", "tracing", "saving"
INPUT, WEIGHTS, MODEL, OTHER = "input", "weights", "model", "other"
