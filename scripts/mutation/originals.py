"""The recordings to damage: samples of the project, shortened so that thousands are read in seconds."""

import gzip
import json
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tfdoctor.recording import MANIFEST, PROGRAM, SAMPLES
from tfdoctor.trace.wire import parse

FOLDER = Path(__file__).parents[2] / "sample_traces"
ON_CPU, ON_GPU, ON_TPU = (
    "cpu-input-bound-fixed",
    "synthetic-gpu-a100-fp32",
    "synthetic-tpu-v5e-padded",
)

STEPS = {ON_CPU: 3, ON_GPU: 6, ON_TPU: 6}
"""Outliers and spread need five steps; the CPU's steps have more events."""

OPERATIONS = 12
"""Number of operations to retain of each recorded graph."""

GPU_SAMPLE = {
    "index": 0, "name": "NVIDIA A100", "visible": True, "gpu_pct": 97, "memory_pct": 40, "sm_mhz": 1200,
    "sm_max_mhz": 1410, "throttle": ["power"], "tensor_pct": 12.5,
}  # fmt: skip

PYTHON = {
    "inside": 3,
    "collecting_ms": 1.5,
    "places": [
        {"at": ["/home/user/train/train.py", 9], "callback": None, "makes": True, "seen": 40}
    ],
    "fed": {
        "at": ["/home/user/train/train.py", 9],
        "arguments": [{"kind": "ndarray", "shape": [32, 10], "dtype": "float32", "anew": True}],
    },
}


@dataclass(frozen=True, slots=True, eq=False)
class Original:
    """A recording: its serialized trace, and its side files as JSON."""

    name: str
    trace: bytes
    manifest: Any
    program: Any
    samples: Any


@cache
def originals() -> tuple[Original, ...]:
    """Return the recordings; those of synthetic devices have the side files of the CPU's."""
    manifest = json.loads((FOLDER / ON_CPU / MANIFEST).read_bytes())
    program = json.loads(gzip.decompress((FOLDER / ON_CPU / PROGRAM).read_bytes()))
    rows = [json.loads(row) for row in (FOLDER / ON_CPU / SAMPLES).read_text("utf-8").splitlines()]
    program = {**_cut(program), "python": PYTHON}
    on_gpu = [{**row, "gpu": [GPU_SAMPLE]} for row in rows]
    return (
        Original(ON_CPU, _trimmed(ON_CPU), manifest, program, rows[-8:]),
        Original(ON_GPU, _trimmed(ON_GPU), manifest, program, on_gpu[-8:]),
        Original(ON_TPU, _trimmed(ON_TPU), None, None, None),
    )


def _cut(program: Any) -> Any:  # noqa: ANN401 - JSON
    cut = deepcopy(program)
    for graph in cut["graphs"]:
        del graph["operations"][OPERATIONS:]
    return cut


def _trimmed(name: str) -> bytes:
    """Return the trace of a sample without its later steps."""
    (path,) = (FOLDER / name).glob("plugins/profile/*/*.xplane.pb")
    space = parse(path)
    end = _end_ps(space, STEPS[name])
    for plane in space.planes:
        for line in plane.lines:
            retained = [e for e in line.events if line.timestamp_ns * 1000 + e.offset_ps < end]
            copies = [type(event).FromString(event.SerializeToString()) for event in retained]
            del line.events[:]
            line.events.extend(copies)
    return bytes(space.SerializeToString())


def _end_ps(space: Any, steps: int) -> int:  # noqa: ANN401 - a message
    """Return the start of the first step that is removed."""
    starts: list[int] = [
        line.timestamp_ns * 1000 + event.offset_ps
        for plane in space.planes
        for line in plane.lines
        for event in line.events
        if plane.event_metadata[event.metadata_id].name == "train"
    ]
    return sorted(starts)[steps]
