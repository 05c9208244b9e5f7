"""The recordings to damage: samples of the project, shortened so that thousands are read in seconds."""

import gzip
import json
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from scripts.mutation.looped import SAMPLED, looped
from scripts.mutation.sparse import keep
from tfdoctor.recording import MANIFEST, PROGRAM, SAMPLES
from tfdoctor.recording.run_log import RUN_LOG
from tfdoctor.trace.wire import parse

FOLDER = Path(__file__).parents[2] / "sample_traces"
ON_CPU, WHOLE_RUN, ON_GPU, ON_TPU, IN_JAX = (
    "cpu-input-bound-fixed",
    "cpu-outside-steps-fixed",
    "synthetic-gpu-a100-fp32",
    "synthetic-tpu-v5e-padded",
    "gpu-jax-float32-convnet-fixed",
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
    "places": [{"at": ["/home/user/train/train.py", 9], "callback": None, "makes": True, "seen": 40}],
    "fed": {
        "at": ["/home/user/train/train.py", 9],
        "arguments": [{"kind": "ndarray", "shape": [32, 10], "dtype": "float32", "anew": True}],
    },
}


@dataclass(frozen=True, slots=True, eq=False)
class Original:
    """A recording: its serialized trace, and its side files as JSON."""

    name: str
    trace: bytes = field(repr=False)
    manifest: Any = field(repr=False)
    program: Any = field(repr=False)
    samples: Any = field(repr=False)
    run_log: Any = field(default=None, repr=False)


@cache
def originals() -> tuple[Original, ...]:
    """Return the recordings; those of a synthetic GPU and of loops have the side files of the CPU's."""
    on_cpu = of_folder(FOLDER / ON_CPU)
    manifest, rows = on_cpu.manifest, on_cpu.samples[-8:]
    program = {**_cut(on_cpu.program), "python": PYTHON}
    on_gpu = [{**row, "gpu": [GPU_SAMPLE]} for row in rows]
    return (
        Original(ON_CPU, _trimmed(ON_CPU), manifest, program, rows),
        Original(ON_GPU, _trimmed(ON_GPU), manifest, program, on_gpu),
        Original(ON_TPU, _trimmed(ON_TPU), None, None, None),
        of_folder(FOLDER / WHOLE_RUN),
        replace(of_folder(FOLDER / IN_JAX), samples=None),
        Original("looped", looped(marked=True), manifest, program | {"python": SAMPLED}, rows),
        Original("unmarked", looped(marked=False), None, None, None),
    )


def of_folder(folder: Path) -> Original:
    """Return a recording as it is, of several traces with the first one."""
    manifest, program, samples = (folder / name for name in (MANIFEST, PROGRAM, SAMPLES))
    return Original(
        folder.name,
        _path(folder).read_bytes(),
        json.loads(manifest.read_bytes()) if manifest.exists() else None,
        json.loads(gzip.decompress(program.read_bytes())) if program.exists() else None,
        _lines(samples),
        _lines(folder / RUN_LOG),
    )


def _lines(path: Path) -> Any:  # noqa: ANN401 - JSON
    return [*map(json.loads, path.read_bytes().splitlines())] if path.exists() else None


def _cut(program: Any) -> Any:  # noqa: ANN401 - JSON
    cut = deepcopy(program)
    for graph in cut["graphs"]:
        del graph["operations"][OPERATIONS:]
    return cut


def _trimmed(name: str) -> bytes:
    """Return the trace of a sample without its later steps."""
    space = parse(_path(FOLDER / name))
    end = _end_ps(space, STEPS[name])
    for plane in space.planes:
        for line in plane.lines:
            keep(line.events, [e for e in line.events if line.timestamp_ns * 1000 + e.offset_ps < end])
    return bytes(space.SerializeToString())


def _path(folder: Path) -> Path:
    """Return a recording's first trace."""
    return min(folder.glob("plugins/profile/*/*.xplane.pb"))


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
