"""The kinds of calls and of work: values of recordings (`tfdoctor.terms.kinds.RunCall` and `RunWork`)."""

from __future__ import annotations

SCRIPT, FIT, EPOCH, STEP, BETWEEN, TRACE, FUNCTION, TEST = (
    "script",
    "fit",
    "epoch",
    "step",
    "between",
    "trace",
    "function",
    "test",
)
EVALUATE, PREDICT, COMPILE, BUILD, ADAPT, SAVE, PROFILER = (
    "evaluate",
    "predict",
    "compile",
    "build",
    "adapt",
    "save",
    "profiler",
)

OPEN = frozenset((SCRIPT, FIT, EPOCH, BETWEEN))
"""Calls within which a tf.function is one of its own; in the others it is a part of them."""

ALONE = frozenset((FIT, EPOCH, EVALUATE, PREDICT, COMPILE, BUILD, ADAPT, SAVE))
"""Calls that are told one by one."""

IMPORTING, BUILDING, TRACING, SAVING, INPUT, MODEL, OTHER = (
    "importing",
    "building",
    "tracing",
    "saving",
    "input",
    "model",
    "other",
)
