"""Recordings of many runs, made of the samples: with other durations, dates, users and programs."""

import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tfdoctor.trace import wire

SAMPLES = Path(__file__).parents[1] / "sample_traces"

SOURCES = (
    "cpu-input-bound",
    "cpu-input-bound-fixed",
    "cpu-float32-convnet",
    "cpu-float32-convnet-fixed",
    "gpu-jax-float32-convnet",
    "synthetic-gpu-a100-fp32",
)

JOBS = 12
USERS = 5
DAY_NS = 86_400 * 10**9


def recordings(folder: Path, count: int, seed: int = 0) -> Iterator[Path]:
    """Write so many recordings below a folder, no two with the same content; yield their folders."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    for number in range(count):
        source = SAMPLES / SOURCES[number % len(SOURCES)]
        out = folder / f"job-{number % JOBS}" / f"run-{number:05}"
        shutil.copytree(source, out)
        (out / "truth.json").unlink(missing_ok=True)
        factor = chance.uniform(0.5, 2.0)
        for trace in out.rglob("*.xplane.pb"):
            trace.write_bytes(slower(trace.read_bytes(), factor))
        if (out / "tfdoctor.json").is_file():
            _rename(out / "tfdoctor.json", number, factor)
        yield out


def slower(content: bytes, factor: float) -> bytes:
    """Return a trace whose times are longer by a factor."""
    space = wire.xplane_pb2().XSpace.FromString(content)
    for line in (line for plane in space.planes for line in plane.lines):
        for event in line.events:
            event.offset_ps = int(event.offset_ps * factor)
            event.duration_ps = int(event.duration_ps * factor)
    written: bytes = space.SerializeToString()
    return written


def _rename(path: Path, number: int, factor: float) -> None:
    """Give a recording the program, the user, the date and the untraced steps of another run."""
    manifest: dict[str, Any] = json.loads(path.read_text())
    manifest["cwd"] = f"/home/user/project-{number % JOBS}"
    manifest["host"]["name"] = f"host{number % USERS}"
    manifest["window"]["started_unix_ns"] += (number // JOBS) * DAY_NS
    untraced = manifest["steps"].get("untraced") or {}
    for key in ("median_ms", "traced_ms", "total_ms"):
        if untraced.get(key):
            untraced[key] *= factor
    path.write_text(json.dumps(manifest))
