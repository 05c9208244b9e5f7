"""The wire format: reads an XSpace file into columns. The only module that knows protobuf.

``xplane_pb2`` lives in the TensorFlow package; it is loaded from its file, without importing
TensorFlow (0.05 s in place of 3 s).
"""

import importlib.util
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from tfdoctor.errors import InputError
from tfdoctor.trace.model import EventType, Line, Plane, Trace, Value
from tfdoctor.trace.names import NOISE, WANTED

Message = Any
"""A message of xplane_pb2, which has no type stubs."""

CONTROL = dict.fromkeys([*range(32), 127])
"""Control characters: TensorFlow 2.4 wrote names that begin with NUL."""


def read(path: Path) -> Trace:
    """Read one host's trace.

    Raises:
        InputError: the file cannot be read, is no XSpace, is damaged or holds nothing.
    """
    space = parse(path)
    planes = tuple(_plane(plane) for plane in space.planes)
    started = [plane.stats.get("profile_start_time") for plane in planes]
    return Trace(
        planes,
        tuple(map(_clean, space.hostnames)),
        tuple(map(_clean, space.errors)),
        tuple(map(_clean, space.warnings)),
        next((int(start) for start in started if start), None),
    )


def parse(path: Path) -> Message:
    """Return the XSpace message in a file.

    Raises:
        InputError: as ``read``.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}).") from error
    if not data:
        raise InputError(f"{path} is empty: the profiler was killed before it wrote; record again.")
    if data.startswith(b"\x1f\x8b"):
        raise InputError(f"{path} is compressed: run gunzip on it first.")
    try:
        space = xplane_pb2().XSpace.FromString(data)
    except DecodeError as error:
        raise InputError(
            f"{path} is damaged or no profiler trace (*.xplane.pb): record again."
        ) from error
    if not space.planes:
        raise InputError(
            f"{path} holds no plane: it is no profiler trace (*.xplane.pb), or an empty one."
        )
    return space


@cache
def xplane_pb2() -> Message:
    """Return TensorFlow's xplane_pb2 without importing TensorFlow.

    Raises:
        InputError: TensorFlow is not installed beside tfdoctor.
    """
    package = importlib.util.find_spec("tensorflow")
    if package is None or package.origin is None:
        raise InputError(
            "TensorFlow is not installed beside tfdoctor, which reads traces with its protobufs."
        )
    path = Path(package.origin).parent / "tsl/profiler/protobuf/xplane_pb2.py"
    spec = importlib.util.spec_from_file_location("_tfdoctor_xplane_pb2", path)
    if spec is None or spec.loader is None:
        raise InputError(f"{path} is missing: reinstall TensorFlow.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _plane(plane: Message) -> Plane:
    names = {key: _clean(metadata.name) for key, metadata in plane.stat_metadata.items()}
    order = sorted(plane.event_metadata)
    types = tuple(_type(plane.event_metadata[key], names) for key in order)
    index = {key: at for at, key in enumerate(order)}
    noise = {at for at, kind in enumerate(types) if kind.name.startswith(NOISE)}
    lines = tuple(_line(line, types, index, noise, names) for line in plane.lines)
    return Plane(
        _clean(plane.name), plane.id, lines, types, _stats(plane.stats, names, all_of_them=True)
    )


def _type(metadata: Message, names: Mapping[int, str]) -> EventType:
    stats = _stats(metadata.stats, names)
    return EventType(_clean(metadata.name), _clean(metadata.display_name), stats)


def _line(
    line: Message,
    types: tuple[EventType, ...],
    index: Mapping[int, int],
    noise: set[int],
    names: Mapping[int, str],
) -> Line:
    base = line.timestamp_ns * 1000
    rows = [
        (base + event.offset_ps, event.duration_ps, kind, _stats(event.stats, names))
        for event in line.events
        if (kind := index.get(event.metadata_id, -1)) not in noise and kind >= 0
    ]
    rows = [_device_time(row) for row in rows]
    rows.sort(key=lambda row: (row[0], -row[1]))
    return Line(
        name=_clean(line.display_name or line.name),
        id=line.id,
        types=types,
        kind=np.fromiter((row[2] for row in rows), np.int32, len(rows)),
        start_ps=np.fromiter((row[0] for row in rows), np.int64, len(rows)),
        duration_ps=np.fromiter((max(0, row[1]) for row in rows), np.int64, len(rows)),
        stats={at: row[3] for at, row in enumerate(rows) if row[3]},
    )


def _device_time(
    row: tuple[int, int, int, dict[str, Value]],
) -> tuple[int, int, int, dict[str, Value]]:
    """Prefer a TPU's own clock, which counts from the profile's start, to the host's."""
    stats = row[3]
    if "device_offset_ps" not in stats and "device_duration_ps" not in stats:
        return row
    start = int(stats.get("device_offset_ps", row[0]))
    return start, int(stats.get("device_duration_ps", row[1])), row[2], stats


def _stats(
    stats: Iterable[Message], names: Mapping[int, str], *, all_of_them: bool = False
) -> dict[str, Value]:
    return {
        name: _value(stat, names)
        for stat in stats
        if (name := names.get(stat.metadata_id, "")) in WANTED or all_of_them
    }


def _value(stat: Message, names: Mapping[int, str]) -> Value:
    """Return a stat's value; ids flip between int64 and uint64 and are made unsigned."""
    kind = stat.WhichOneof("value")
    if kind is None:
        return 0
    value = getattr(stat, kind)
    if kind == "ref_value":
        return names.get(value, "")
    if isinstance(value, str):
        return _clean(value)
    return value % 2**64 if isinstance(value, int) and value < 0 else value


def _clean(text: str) -> str:
    return text.translate(CONTROL)
