"""The edit of each edit id that several rules share, and what a recording has to show for it.

A rule that is a package brings its own edits: ``EDITS`` in its ``edit.py``.
"""

from collections.abc import Callable

from tfdoctor.edits.caches import cache, cache_before_repeat
from tfdoctor.edits.callback_batches import every_hundred_batches, rarer_callback
from tfdoctor.edits.calls_per_batch import calls_per_batch, predict_on_batch
from tfdoctor.edits.eager import must_be_traceable
from tfdoctor.edits.execution import jit_compile, must_fill_epochs, run_eagerly_off, steps_per_execution
from tfdoctor.edits.graph import graph_of_call, tf_function
from tfdoctor.edits.intervals import every_hundred_steps
from tfdoctor.edits.module import SyntaxTree
from tfdoctor.edits.pipelines import (
    drop_remainder,
    must_be_of_numbers,
    must_have_open_lengths,
    must_keep_order,
    parallel,
    prefetch,
)
from tfdoctor.edits.splice import Declined, Elsewhere, Splice
from tfdoctor.edits.weights import assign_weights
from tfdoctor.edits.whole_numbers import must_be_the_only_file
from tfdoctor.recording.program import ProgramRecord

# Takes a file, a line (from 1, or 0 for unknown) and the rule's example; returns splices or raises Declined.
Kind = Callable[[SyntaxTree, int, str], list[Splice]]


def first_of(*kinds: Kind) -> Kind:
    """Return the edit of the first of several kinds that does not decline; the last one concerns every line."""

    def edit(module: SyntaxTree, line: int, example: str) -> list[Splice]:
        reasons: list[Declined] = []
        for kind in kinds:
            try:
                return kind(module, line, example)
            except Elsewhere:
                continue
            except Declined as reason:
                reasons.append(reason)
        raise reasons[0]

    return edit


KINDS: dict[str, Kind] = {
    "prefetch": prefetch,
    "parallel-map": parallel("map", 1),
    "parallel-batch": parallel("batch", 2),
    "parallel-interleave": parallel("interleave", 3),
    "cache": cache,
    "cache-before-repeat": cache_before_repeat,
    "drop-remainder": drop_remainder,
    "jit-compile": jit_compile,
    "steps-per-execution": steps_per_execution,
    "run-eagerly-off": run_eagerly_off,
    "calls-per-batch": calls_per_batch,
    "loop-work": first_of(calls_per_batch, assign_weights, graph_of_call, every_hundred_steps),
    "assign-weights": assign_weights,
    "tf-function": tf_function,
    "every-hundred-steps": every_hundred_steps,
    "every-hundred-batches": every_hundred_batches,
    "rarer-callback": rarer_callback,
    "predict-on-batch": predict_on_batch,
}

# Take the program record, a file and the rule's example; raise Declined where the record excludes the edit.
CHECKS: dict[str, Callable[[ProgramRecord, SyntaxTree, str], None]] = {
    "steps-per-execution": must_fill_epochs,
    "run-eagerly-off": must_be_traceable,
    "parallel-map": must_keep_order,
    "parallel-batch": must_keep_order,
    "parallel-interleave": must_keep_order,
    "layer-width": must_be_the_only_file,
    "sliding-windows": must_be_of_numbers,
    "own-length": must_have_open_lengths,
}
