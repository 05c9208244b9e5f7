"""Operations' shapes as the trace contains them, for runs without a program record.

The profiler writes the shapes of an operation's inputs with it at higher tracer levels (`shape`,
"(float[32,64,64,3];float[3,3,3,128])"), and the shapes of its allocations, results included, as memory
events.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from tfdoctor.facts.run.device import Device, work_lines
from tfdoctor.facts.run.operation_types import CONVOLUTIONS, MATMULS, base_type
from tfdoctor.facts.run.program import Operation, Tensor
from tfdoctor.facts.run.xla_operations import XlaOperations
from tfdoctor.facts.timeline.host_events import operation_label
from tfdoctor.facts.timeline.trainer import is_named
from tfdoctor.trace import Line, Plane, Trace
from tfdoctor.trace.names import STREAM_PREFIX

# A tensor as the profiler writes it; "?" or other texts instead of sizes are unknown.
TENSOR_TEXT = re.compile(r"([a-z_]\w*)\[([\d,]*)\]")
# TensorFlow's short names in these texts that differ from those of its Python types.
TYPES = {"float": "float32", "half": "float16", "double": "float64"}
Key = tuple[str, str]  # Name and type of an operation
# TensorFlow's numbers of the floating-point types (types.proto).
FLOATS = {1: "float32", 2: "float64", 14: "bfloat16", 19: "float16"}

MEMORY = "MemoryAllocation"


@dataclass(frozen=True, slots=True)
class TracedShapes:
    """Operations with the shapes of their inputs and, where unambiguous, of their result."""

    operations: Mapping[Key, Operation] = field(default_factory=dict)

    @classmethod
    def measure(cls, trace: Trace, device: Device, xla_operations: XlaOperations) -> Self:
        """Read the shapes with the device's work, the allocations on the host, and XLA's programs.

        A matmul's result is known where it allocated only that: several may include scratch memory.
        """
        inputs_by_key: dict[Key, tuple[Tensor, ...] | None] = {}
        for key, text in _shape_texts(device.busiest) if device.busiest else ():
            inputs = parse(text)
            if inputs_by_key.setdefault(key, inputs) != inputs:
                inputs_by_key[key] = None  # its runs disagree
        known = {(one.name, one.type): one for one in xla_operations.operations.values()}
        inputs_of = {key: inputs for key, inputs in inputs_by_key.items() if inputs}
        allocated = _allocated(trace.host) if trace.host and inputs_of else {}
        for (name, kind), inputs in inputs_of.items():
            results = allocated.get(name, set()) if kind in CONVOLUTIONS | MATMULS else set()
            outputs = tuple(results) if len(results) == 1 else ()
            known[name, kind] = Operation(name=name, type=kind, inputs=inputs, outputs=outputs)
        return cls(known)


def _allocated(host: Plane) -> dict[str, set[Tensor]]:
    """Return the floating-point tensors of two and more dimensions that each operation allocated."""
    tensors: dict[str, set[Tensor]] = defaultdict(set)
    found = {one for line in host.lines for one in allocations(line, "shape", "data_type")}
    for name, shape, number in found:
        dtype = FLOATS.get(int(number or 0))
        tensor = parse(f"{dtype}{shape}") if dtype else None
        if tensor and len(tensor[0][1] or ()) > 1:
            tensors[name].add(tensor[0])
    return tensors


def allocations(line: Line, *stats: str) -> Iterator[tuple[Any, ...]]:
    """Yield of each allocation the name of the operation ("": unknown), and its values of stats; None without."""
    events = np.flatnonzero(is_named(line, MEMORY.__eq__))
    if not len(events):
        return
    names = (str(name or "") for name in line.stats.values_of("tf_op", events))
    columns = [line.stats.values_of(stat, events) for stat in stats]
    for name, *values in zip(names, *columns, strict=True):
        if name or values.count(None) < len(values):
            yield (name, *values)


def parse(text: str) -> tuple[Tensor, ...] | None:
    """Return the tensors of a `shape` text; None when the text is another, or any tensor is unknown."""
    matches = [TENSOR_TEXT.fullmatch(part.strip()) for part in text.strip("()").split(";")]
    tensors = [
        (TYPES.get(match[1], match[1]), tuple(int(size) for size in match[2].split(",") if size))
        for match in matches
        if match
    ]
    return tuple(tensors) if len(tensors) == len(matches) else None


def _shape_texts(plane: Plane) -> Iterator[tuple[Key, str]]:
    """Yield name and type of each operation that has a `shape` text, and the text."""
    for line in work_lines(plane) or plane.lines:
        if line.name.startswith(STREAM_PREFIX):
            for event in map(line.event, line.stats.having("shape").tolist()):
                texts = (str(event.stats.get(key) or "") for key in ("tf_op", "annotation", "level 0"))
                text = next((text for text in texts if ":" in text), "").split("#")[0]
                name, colon, kind = text.rpartition(":")
                if colon:
                    yield (name, base_type(kind)), str(event.stats["shape"])
            continue
        events, shapes = line.stats.values("shape")
        for number, shape in dict.fromkeys(zip(line.kind[events].tolist(), shapes, strict=True)):
            if label := operation_label(line.types[number]):
                yield (label[0], base_type(label[1])), str(shape)
