"""Which remedies are edits, by the name of their trial."""

from collections.abc import Callable

from tfdoctor.edits.eager import must_be_of_keras
from tfdoctor.edits.execution import (
    jit_compile,
    must_fill_epochs,
    run_eagerly_off,
    steps_per_execution,
)
from tfdoctor.edits.module import SyntaxTree
from tfdoctor.edits.options import autotune_on
from tfdoctor.edits.pipelines import (
    cache,
    drop_remainder,
    must_keep_order,
    parallel,
    prefetch,
)
from tfdoctor.edits.precision import mixed_precision
from tfdoctor.edits.splice import Splice
from tfdoctor.recording.program import ProgramRecord

Kind = Callable[[SyntaxTree, int, str], list[Splice]]
"""From a file, a line (from 1, or 0 for unknown) and the rule's example to splices, or Declined."""

KINDS: dict[str, Kind] = {
    "prefetch": prefetch,
    "parallel-map": parallel("map", 1),
    "parallel-batch": parallel("batch", 2),
    "parallel-interleave": parallel("interleave", 3),
    "cache": cache,
    "drop-remainder": drop_remainder,
    "mixed-precision": mixed_precision,
    "jit-compile": jit_compile,
    "steps-per-execution": steps_per_execution,
    "run-eagerly-off": run_eagerly_off,
    "autotune-on": autotune_on,
}

CHECKS: dict[str, Callable[[ProgramRecord, str], None]] = {
    "steps-per-execution": must_fill_epochs,
    "run-eagerly-off": must_be_of_keras,
    "parallel-map": must_keep_order,
    "parallel-batch": must_keep_order,
    "parallel-interleave": must_keep_order,
}
"""What the program record says against an edit: from it and the rule's example to Declined, or None."""

BY_HAND = {
    "vectorized-map": "the mapped function has to take whole batches, which only its author can see to",
    "input-signature": "the shapes and types that are meant are not in the file",
    "fused-batch-norm": "a class has to be added, and used where the model is built",
}
"""Remedies that have a name and no edit, and why."""
