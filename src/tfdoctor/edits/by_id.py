"""The edit of each edit id that several rules share, and what a recording has to show for it.

A rule that is a package brings its own edits: ``EDITS`` in its ``edit.py``.
"""

from collections.abc import Callable

from tfdoctor.edits import pipelines
from tfdoctor.edits.execution import jit_compile, must_fill_epochs, run_eagerly_off, steps_per_execution
from tfdoctor.edits.graph import must_be_of_keras, tf_function
from tfdoctor.edits.sizes import must_be_the_only_file
from tfdoctor.recording.program import ProgramRecord
from tfdoctor.source_code.splice import Splice
from tfdoctor.source_code.tree import SyntaxTree

# Takes a file, a line (from 1, or 0 for unknown) and the rule's example; returns splices or raises Declined.
Kind = Callable[[SyntaxTree, int, str], list[Splice]]

KINDS: dict[str, Kind] = {
    "prefetch": pipelines.prefetch,
    "parallel-map": pipelines.parallel_map,
    "parallel-batch": pipelines.parallel_batch,
    "parallel-interleave": pipelines.parallel_interleave,
    "cache": pipelines.cache,
    "cache-before-repeat": pipelines.cache_before_repeat,
    "jit-compile": jit_compile,
    "steps-per-execution": steps_per_execution,
    "run-eagerly-off": run_eagerly_off,
    "tf-function": tf_function,
}

# Take the program record, a file, a line and the rule's example; raise Declined where the record excludes the edit.
CHECKS: dict[str, Callable[[ProgramRecord, SyntaxTree, int, str], None]] = {
    "steps-per-execution": must_fill_epochs,
    "run-eagerly-off": must_be_of_keras,
    "cache": pipelines.must_be_cacheable,
    "cache-before-repeat": pipelines.must_be_repeatable,
    "parallel-map": pipelines.must_keep_order,
    "parallel-batch": pipelines.must_keep_order,
    "parallel-interleave": pipelines.must_keep_order,
    "layer-width": must_be_the_only_file,
}
