"""Input that is always ready: a tf.data pipeline hands out its first batches again and again.

The pipeline that is iterated is another one: the first batches, kept in memory, as often as the data has batches.
So what iterates it, be it Keras, a loop in Python, or several steps in one call, needs no change.
"""

from __future__ import annotations

import functools
import sys

from ..process import tensorflow_api
from ..process.frames import UP, hide
from ..process.journal import guarded
from ..process.nested import leaves
from ..process.stack import line_number, user_file, user_frame
from ..program.registry import DATASETS
from ..run.loops import iterated_by_loop_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

    from ..process.declared import Foreign
    from ..process.imports import Hooks
    from .taken_out import TakenOut

# Batches that are kept, and about the bytes that they may take: several, so that their shapes vary as usual.
BATCHES, MOST_BYTES = 8, 2**28
UNKNOWN_ROWS = 32  # What stands for a dimension that is not known before a batch is there
KEPT = "_tfdoctor_ready"  # Attribute of a dataset: the one with ready batches, for a loop is known by its dataset
INFINITE, UNKNOWN = -1, -2  # Cardinalities of tf.data
DEEPEST = 12  # Frames between the iteration of a dataset and what counts its batches


def hooks(out: TakenOut) -> Hooks:
    """Return what to patch in which module."""
    return {DATASETS: [lambda module: ReadyInput(out).patch(module.DatasetV2)]}


class ReadyInput:
    """Gives out a dataset of ready batches where one is iterated from Python."""

    def __init__(self, out: TakenOut) -> None:
        self.out, self.log = out, out.log

    def patch(self, kind: Foreign) -> None:
        """Iterate over ready batches instead."""
        original, eager = kind.__iter__, tensorflow_api.context().executing_eagerly

        @functools.wraps(original)
        def __iter__(dataset: Foreign) -> object:
            ready = self.ready(dataset, sys._getframe(UP)) if eager() else None
            return original(dataset if ready is None else ready)

        kind.__iter__ = hide(__iter__)

    @guarded("without")
    def ready(self, dataset: Foreign, frame: FrameType | None) -> Foreign:
        """Return the dataset with ready batches; None where the number of its batches is unknown."""
        attributes: Foreign = vars(dataset)
        known = attributes.get(KEPT)
        if known is None:
            length = int(dataset.cardinality())
            if length == UNKNOWN:
                length = self._counted(frame)
            if length == UNKNOWN:
                self.out.refused = "the number of batches of a pass over the data is unknown"
                return None
            few = batches_kept(dataset.element_spec)
            known = dataset.take(few).cache().repeat()
            known = attributes[KEPT] = known if length == INFINITE else known.take(length)
        self.out.reached += 1
        return known

    def _counted(self, frame: FrameType | None) -> int:
        """Return the length of data that does not know it: what iterates it counts, or the recording did."""
        at = frame
        for _ in range(DEEPEST):
            if at is None:
                break
            counts: Foreign = at.f_locals.get("self")
            if getattr(counts, "num_batches", None) or getattr(counts, "inferred_steps", None):
                return INFINITE
            at = at.f_back
        seen = self.out.length
        return seen if seen is not None and self._feeds(frame) else UNKNOWN

    def _feeds(self, frame: FrameType | None) -> bool:
        """Say whether what a frame iterates feeds the training: fit at its line, or the loop around it."""
        users, at = user_frame(frame), self.out.at
        if users is None or at is None or user_file(users.f_code.co_filename) != at[0]:
            return False
        line = at[1]
        here = line_number(users) == line
        return here or (isinstance(line, int) and iterated_by_loop_of(users.f_code, users.f_lasti, line))


def batches_kept(spec: Foreign) -> int:
    """Return how many batches of this kind are kept in memory."""
    size = sum(_bytes(leaf) for leaf in leaves(spec))
    return max(1, min(BATCHES, MOST_BYTES // max(1, size)))


def _bytes(leaf: Foreign) -> int:
    """Return about how many bytes a tensor of a batch takes."""
    shape: Foreign = getattr(leaf, "shape", None)
    dtype: Foreign = getattr(leaf, "dtype", None)
    known = [None] if getattr(shape, "rank", None) is None else shape.as_list()
    elements = 1
    for dimension in known:
        elements *= UNKNOWN_ROWS if dimension is None else dimension
    return int(elements * (getattr(dtype, "size", None) or 1))
