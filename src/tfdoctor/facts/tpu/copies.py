"""A TPU core's asynchronous copies and collectives, and the waits for them.

XLA starts such work with one operation (copy-start, all-gather-start, send) and waits for it with another
(copy-done). The time between them is hidden, the wait is exposed.
"""

import re
from collections import defaultdict
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from tfdoctor.facts.steps.step import PS_PER_MS
from tfdoctor.facts.tpu.shapes import arrays
from tfdoctor.trace import EventType, Intervals, Line
from tfdoctor.trace.hlo import HOST_SPACE

DONE = re.compile(r"-done(?:(?!-done)[\w.-])*\(")  # The end of asynchronous work in HLO text, before its operands
OPERAND = re.compile(r"%([\w.-]+)\)")  # The last one began that work


class CopyPlace(StrEnum):
    """Where a copy goes."""

    HOST = "host"  # over PCIe, to or from the host
    CHIP = "chip"  # within the chip's memories
    PEERS = "cores"  # between cores


HOST, CHIP, PEERS = CopyPlace


@dataclass(frozen=True, slots=True)
class Copy:
    """One pair of operations. Milliseconds and bytes per round of the program."""

    name: str  # "copy-done.5"
    category: str  # XLA's: "copy-done", "all-gather-done"
    where: CopyPlace
    nbytes: float
    exposed_ms: float  # in which the core waited for it
    calls: float


def copies(line: Line, inside: NDArray[np.bool_], rounds: int) -> tuple[tuple[Copy, ...], Intervals]:
    """Pair the operations of a core's line "XLA Ops" that the (n,) mask ``inside`` selects.

    Returns the pairs, those waited for the longest first, and when any of them was under way.
    """
    by_name: dict[str, list[int]] = defaultdict(list)
    for index, kind in enumerate(line.types):
        by_name[name_of(kind)].append(index)
    pairs, under_way = [], Intervals()
    for index, kind in enumerate(line.types):
        done = DONE.search(kind.name)
        started = OPERAND.findall(kind.name, done.end()) if done else ()
        ends = np.flatnonzero((line.kind == index) & inside)
        if not started or not len(ends):
            continue
        program = kind.stats.get("program_id")
        named = by_name.get(started[-1], ())
        kinds = [at for at in named if line.types[at].stats.get("program_id") == program]
        starts = line.start_ps[np.isin(line.kind, kinds)]
        began = line.start_ps[ends]
        finish = began + line.duration_ps[ends]
        if len(starts):  # an end without a start counts from itself
            before = np.searchsorted(starts, began, side="right") - 1
            began = np.where(before >= 0, starts[np.maximum(before, 0)], began)
        pairs.append(_copy(line, kind, ends, rounds))
        under_way |= Intervals.merged(began, finish)
    return tuple(sorted(pairs, key=lambda copy: -copy.exposed_ms)), under_way


def name_of(kind: EventType) -> str:
    """Return an instruction's name: "copy-done.5"."""
    return kind.display_name or kind.name.partition(" ")[0].lstrip("%")


def _copy(line: Line, kind: EventType, ends: NDArray[np.intp], rounds: int) -> Copy:
    category, moved = str(kind.stats.get("hlo_category", "")), arrays(kind.name)
    where = CHIP if category.startswith(("copy", "slice", "async")) else PEERS
    if any(array.space == HOST_SPACE for array in moved) or category.startswith("host"):
        where = HOST
    # Those of its result, else those that the profiler counted.
    nbytes = float(moved[0].nbytes if moved else max(0, kind.stats.get("bytes_accessed", 0)))
    waited = float(line.duration_ps[ends].sum()) / PS_PER_MS / rounds
    return Copy(name_of(kind), category, where, nbytes * len(ends) / rounds, waited, len(ends) / rounds)
