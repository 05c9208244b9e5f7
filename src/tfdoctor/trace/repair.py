"""Mends a trace for xprof, on a parsed copy and never in the file.

Each repair answers one thing that xprof 2.24 gets wrong: a trace that was saved grouped is not
regrouped; any ``iter_num`` above 0 hides every step; calls of Keras' train function are no steps
without a marker; CUPTI's names for copies are read as compute.
"""

import re
from collections.abc import Iterable
from itertools import count

from tfdoctor.trace.names import TRAINING_CALLS
from tfdoctor.trace.wire import Message

HOST = "/host:CPU"
GPU = "/device:GPU"
TPU = "/device:TPU"
DERIVED = ("Steps", "TensorFlow Ops", "TensorFlow Name Scope")
"""Lines that TensorFlow 2.3 and 2.4 saved beside the ones they were derived from. (A TPU has a line
"Steps" of its own.)"""


def mend(space: Message) -> None:
    """Apply every repair, in the order in which they depend on each other.

    Saved groups are forgotten only where steps can be marked anew: else they are all there is.
    """
    if _has(space, ("train", *TRAINING_CALLS)):
        forget_groups(space)
    zero_iter_num(space)
    if not _has(space, ("train",)):
        mark_steps(space)
    rename_copies(space)


def host_only(space: Message) -> Message:
    """Return the trace without devices: xprof then sees the wait it hides on a GPU.

    The batch's copy to the device is called ``IteratorGetNext/...:_Send`` and would count as
    waiting for input.
    """
    view = type(space)(hostnames=space.hostnames)
    view.planes.extend(plane for plane in space.planes if not plane.name.startswith("/device:"))
    for plane in view.planes:
        sends = {
            key
            for key, metadata in plane.event_metadata.items()
            if re.match(r"IteratorGetNext\w*/.*:_Send$", metadata.name)
        }
        for line in plane.lines:
            _keep(line.events, [event for event in line.events if event.metadata_id not in sends])
    return view


def forget_groups(space: Message) -> None:
    """Let xprof group again: it does so only where no stat is called group_id."""
    for plane in space.planes:
        old = {key for name in ("group_id", "step_name") if (key := _stat(plane, name)) is not None}
        for key in old:
            del plane.stat_metadata[key]
        if not plane.name.startswith(TPU):
            _keep(plane.lines, [line for line in plane.lines if line.name not in DERIVED])
        for event in _events(plane) if old else ():
            _keep(event.stats, [stat for stat in event.stats if stat.metadata_id not in old])


def zero_iter_num(space: Message) -> None:
    """Let steps with a loop inside (RNNs, steps_per_execution) be steps."""
    for plane in space.planes:
        key = _stat(plane, "iter_num") if plane.name == HOST else None
        for event in _events(plane) if key is not None else ():
            for stat in event.stats:
                if stat.metadata_id == key:
                    stat.int64_value = 0


def mark_steps(space: Message) -> int:
    """Turn each call of Keras' train function into a step marker; return how many there are."""
    numbers = count()
    for plane in space.planes:
        calls = {key for key, m in plane.event_metadata.items() if m.name in TRAINING_CALLS}
        if plane.name != HOST or not calls:
            continue
        root, number = _new_stat(plane, "_r"), _new_stat(plane, "step_num")
        for event in _events(plane):
            if event.metadata_id in calls:
                event.stats.add(metadata_id=root, int64_value=1)
                event.stats.add(metadata_id=number, int64_value=next(numbers))
        for key in calls:
            plane.event_metadata[key].name = "train"
    return next(numbers)


def rename_copies(space: Message) -> None:
    """Give copies the names and the size field that xprof's parser knows."""
    for plane in space.planes:
        if not plane.name.startswith(GPU):
            continue
        for metadata in plane.event_metadata.values():
            metadata.name = re.sub(r"^Memcpy([HDP])2([HDP])$", r"Memcpy\1To\2", metadata.name)
        details = _stat(plane, "memcpy_details")
        for event in _events(plane) if details is not None else ():
            for stat in event.stats:
                if stat.metadata_id == details and (
                    size := re.search(r"\bsize:(\d+)", _text(plane, stat))
                ):
                    stat.str_value = f"num_bytes:{size[1]}"


def _has(space: Message, names: tuple[str, ...]) -> bool:
    """Whether the host's plane knows an event of one of these names."""
    return any(
        metadata.name in names
        for plane in space.planes
        if plane.name == HOST
        for metadata in plane.event_metadata.values()
    )


def _events(plane: Message) -> Iterable[Message]:
    return (event for line in plane.lines for event in line.events)


def _text(plane: Message, stat: Message) -> str:
    if stat.WhichOneof("value") != "ref_value":
        return str(stat.str_value)
    known = stat.ref_value < 2**63 and stat.ref_value in plane.stat_metadata
    return str(plane.stat_metadata[stat.ref_value].name) if known else ""


def _stat(plane: Message, name: str) -> int | None:
    return next(
        (key for key, metadata in plane.stat_metadata.items() if metadata.name == name), None
    )


def _new_stat(plane: Message, name: str) -> int:
    key = _stat(plane, name)
    if key is None:
        key = next(free for free in count(1) if free not in plane.stat_metadata)
        plane.stat_metadata[key].id, plane.stat_metadata[key].name = key, name
    return key


def _keep(repeated: Message, kept: list[Message]) -> None:
    """Leave only some messages in a repeated field."""
    if len(kept) == len(repeated):
        return
    copies = [type(message).FromString(message.SerializeToString()) for message in kept]
    del repeated[:]
    repeated.extend(copies)
