"""Repairs a trace for xprof, on a parsed copy and never in the file.

Each repair works around one fault of xprof 2.24: any ``iter_num`` above 0 hides every step; calls of Keras' train
function without a marker are not steps; copies with CUPTI's names count as compute.
"""

import re
from collections.abc import Iterable
from itertools import count

from tfdoctor.trace.names import ITERATOR, NOISE, TRAINING_CALLS
from tfdoctor.trace.wire import Message

HOST = "/host:CPU"
GPU = "/device:GPU"
# How the names of events begin that have no iter_num: those of thread pools (half of all events) and tf.data.
OUTSIDE_LOOPS = (NOISE, ITERATOR)


def repair(space: Message) -> None:
    """Apply all repairs."""
    hosts = [plane for plane in space.planes if plane.name == HOST]
    marked = any(metadata.name == "train" for plane in hosts for metadata in plane.event_metadata.values())
    for plane in hosts:
        _zero_iter_num(plane)
        if not marked:
            _mark_steps(plane)
    for plane in space.planes:
        if plane.name.startswith(GPU):
            _rename_copies(plane)


def _zero_iter_num(plane: Message) -> None:
    """Set iter_num to 0, so that xprof sees steps with an inner loop (RNNs, steps_per_execution)."""
    key = _stat(plane, "iter_num")
    without = {of for of, kind in plane.event_metadata.items() if kind.name.startswith(OUTSIDE_LOOPS)}
    for event in _events(plane) if key is not None else ():
        for stat in () if event.metadata_id in without else event.stats:
            if stat.metadata_id == key:
                stat.int64_value = 0


def _mark_steps(plane: Message) -> None:
    """Turn each call of Keras' train function into a step marker."""
    calls, numbers = {key for key, m in plane.event_metadata.items() if m.name in TRAINING_CALLS}, count()
    if not calls:
        return
    root, number = _new_stat(plane, "_r"), _new_stat(plane, "step_num")
    for event in _events(plane):
        if event.metadata_id in calls:
            event.stats.add(metadata_id=root, int64_value=1)
            event.stats.add(metadata_id=number, int64_value=next(numbers))
    for key in calls:
        plane.event_metadata[key].name = "train"


def _rename_copies(plane: Message) -> None:
    """Give copies the names and the size field that xprof's parser expects."""
    for metadata in plane.event_metadata.values():
        metadata.name = re.sub(r"^Memcpy([HDP])2([HDP])$", r"Memcpy\1To\2", metadata.name)
    details = _stat(plane, "memcpy_details")
    for event in _events(plane) if details is not None else ():
        for stat in event.stats:
            if stat.metadata_id == details and (size := re.search(r"\bsize:(\d+)", _text(plane, stat))):
                stat.str_value = f"num_bytes:{size[1]}"


def _events(plane: Message) -> Iterable[Message]:
    return (event for line in plane.lines for event in line.events)


def _text(plane: Message, stat: Message) -> str:
    if stat.WhichOneof("value") != "ref_value":
        return str(stat.str_value)
    defined = stat.ref_value < 2**63 and stat.ref_value in plane.stat_metadata
    return str(plane.stat_metadata[stat.ref_value].name) if defined else ""


def _stat(plane: Message, name: str) -> int | None:
    return next((key for key, metadata in plane.stat_metadata.items() if metadata.name == name), None)


def _new_stat(plane: Message, name: str) -> int:
    key = _stat(plane, name)
    if key is None:
        key = next(free for free in count(1) if free not in plane.stat_metadata)
        plane.stat_metadata[key].id, plane.stat_metadata[key].name = key, name
    return key
