"""Damage to a trace: to its bytes, or to its content, so that it can still be parsed."""

from collections.abc import Callable
from random import Random
from typing import Any

from scripts.mutation import sparse
from scripts.mutation.side_files import HOSTILE
from tfdoctor.trace.names import WANTED
from tfdoctor.trace.wire import xplane_pb2

EXTREMES = (
    0, 1, -1, 7, 10**6, 10**12, -(10**12), 2**31, 2**53, 2**60, -(2**60), 2**62, 2**63 - 1, -(2**63),
)  # fmt: skip
"""Invalid times, durations and ids."""

HOSTILE_NAMES = tuple(text for text in HOSTILE if "\ud800" not in text)
"""Without what UTF-8 does not have."""

EVENTS = (
    "train", "tfdoctor_end", "", "Iterator::Root", "Iterator::Root::Prefetch", "Iterator::Root::Map",
    "ExecutorState::Process", "IteratorGetNextOp::DoCompute", "EagerLocalExecute: MatMul", "train_function",
    "PrefetchProduce", "FunctionRun", "MemcpyH2D", "model/conv/Conv2D:Conv2D", "all-reduce.1", "TraceContext",
    "MemoryAllocation", "tf.function-graph_building", "cuLaunchKernel", "BatchV2Produce", "XlaCompile", "Steps",
    "ncclKernel_AllReduce", "GpuExecutable::Execute", "PjitFunction(step)", "ThreadpoolListener::StartRegion",
    "map/while/body/_3/map/while/MatMul:MatMul", *HOSTILE_NAMES,
)  # fmt: skip
"""Names that facts search for."""

LINES = (
    "python",
    "",
    "tf_data_iterator",
    "Stream #13(compute)",
    "XLA Ops",
    "XLA Modules",
    "Steps",
    "tf_Compute/_Eigen/1",
)
PLANES = (
    "/host:CPU", "", "/device:GPU:0", "/device:GPU:1", "/device:TPU:0", "/host:metadata", "/device:GPU:x",
    "Task Environment", "/device:CUSTOM:0",
)  # fmt: skip
STATS = sorted(WANTED)
TEXTS = (
    "",
    "nan",
    "-1",
    "1e999",
    "f32[2,3]{1,0}",
    "f32[0]",
    "8:8:8",
    "traced-nonXla",
    "\0",
    "x" * 300,
    "size:" + "9" * 400,
    *HOSTILE_NAMES,
)
FLOATS = (0.0, -1.0, 1e308, float("nan"), float("inf"), -float("inf"), 5e-324)

Message = Any


def bytes_damaged(trace: bytes, random: Random) -> bytes:
    """Flip, drop or insert some bytes."""
    data, at = bytearray(trace), random.randrange(len(trace))
    match random.randrange(4):
        case 0:
            for _ in range(random.randint(1, 20)):
                data[random.randrange(len(data))] = random.randrange(256)
        case 1:
            del data[at:]
        case 2:
            del data[at : at + random.randint(1, 200)]
        case _:
            data[at:at] = random.randbytes(random.randint(1, 50))
    return bytes(data)


def restructured(trace: bytes, random: Random) -> bytes:
    """Change the trace's content, one to four times."""
    space = xplane_pb2().XSpace.FromString(trace)
    for _ in range(random.randint(1, 4)):
        random.choice(CHANGES)(space, random)
    return bytes(space.SerializeToString())


def _plane(space: Message, random: Random) -> Message:
    return random.choice(space.planes) if len(space.planes) else space.planes.add(name="/host:CPU")


def _line(space: Message, random: Random) -> Message:
    """Return a line, one with events if possible."""
    lines = [line for plane in space.planes for line in plane.lines if len(line.events)]
    return random.choice(lines) if lines else _plane(space, random).lines.add(name="python")


def _repeated(repeated: Message, random: Random) -> None:
    """Drop, duplicate or empty a list of messages."""
    if not len(repeated):
        return
    at = random.randrange(len(repeated))
    match random.randrange(4):
        case 0:
            del repeated[at]
        case 1:
            repeated.add().CopyFrom(repeated[at])
        case 2:
            del repeated[at : at + random.randint(1, len(repeated))]
        case _:
            del repeated[:]


def _planes(space: Message, random: Random) -> None:
    _repeated(space.planes, random)


def _lines(space: Message, random: Random) -> None:
    _repeated(_plane(space, random).lines, random)


def _events(space: Message, random: Random) -> None:
    _repeated(_line(space, random).events, random)


def _some_events(space: Message, random: Random) -> list[Message]:
    """Return one event, all of one type, or all of a line."""
    events = list(_line(space, random).events)
    if not events or random.random() < 0.2:  # noqa: PLR2004 - now and then
        return events
    event = random.choice(events)
    same_type = [other for other in events if other.metadata_id == event.metadata_id]
    return random.choice(([event], same_type))


def _times(space: Message, random: Random) -> None:
    field, value = (random.choice(("offset_ps", "duration_ps", "metadata_id")), random.choice(EXTREMES))
    for event in _some_events(space, random):
        setattr(event, field, value)


def _scaled(space: Message, random: Random) -> None:
    """Multiply times of a line by a large or a negative factor."""
    factor = random.choice((-1, 0, 10**3, 10**6, 10**9))
    for event in _some_events(space, random):
        for field in ("offset_ps", "duration_ps"):
            setattr(event, field, max(-(2**63), min(2**63 - 1, getattr(event, field) * factor)))


def _origin(space: Message, random: Random) -> None:
    _line(space, random).timestamp_ns = random.choice((*EXTREMES, 10**18))


def _names(space: Message, random: Random) -> None:
    plane = _plane(space, random)
    match random.randrange(3):
        case 0:
            plane.name = random.choice(PLANES)
        case 1 if len(plane.lines):
            random.choice(plane.lines).name = random.choice(LINES)
        case _:
            _renamed(plane.event_metadata, random, EVENTS)


def _renamed(metadata: Message, random: Random, names: tuple[str, ...] | list[str]) -> None:
    """Rename or remove an entry of a table."""
    keys = sorted(metadata)
    if not keys:
        return
    key = random.choice(keys)
    if random.random() < 0.2:  # noqa: PLR2004 - now and then
        del metadata[key]
    else:
        metadata[key].name = random.choice(names)


def _stat_names(space: Message, random: Random) -> None:
    _renamed(_plane(space, random).stat_metadata, random, STATS)


def _stats(space: Message, random: Random) -> None:
    """Give stats values of other types."""
    plane = _plane(space, random)
    holders = [*_some_events(space, random), plane, *list(plane.event_metadata.values())[:20]]
    stats = [stat for holder in holders for stat in holder.stats]
    if not stats:
        return
    kinds = {random.choice(stats).metadata_id}
    field, value = _value(random)
    for stat in stats:
        if stat.metadata_id in kinds:
            setattr(stat, field, value)


def _value(random: Random) -> tuple[str, int | float | str | bytes]:
    number = random.choice(EXTREMES)
    return random.choice(
        (
            ("int64_value", number),
            ("uint64_value", number % 2**64),
            ("ref_value", number % 2**64),
            ("double_value", random.choice(FLOATS)),
            ("str_value", random.choice(TEXTS)),
            ("bytes_value", b"\xff\x00"),
        )
    )


CHANGES: tuple[Callable[[Message, Random], None], ...] = (
    _planes, _lines, _events, _events, _times, _times, _times, _scaled, _origin, _names, _names, _stat_names,
    _stats, _stats, _stats, *sparse.CHANGES,
)  # fmt: skip
