"""Jobs of several GPU hosts that train in step: each all-reduce lasts until the slowest host is there."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from scripts.synthetic import gpu
from scripts.synthetic.run import Run

EXCHANGE_MS = 0.5
"""What the all-reduce takes once all hosts are there."""


def in_step(runs: Mapping[str, Run]) -> dict[str, Run]:
    """Return the runs with all-reduces in which the fast hosts wait for the slowest: all steps are equal."""
    exchanging = {name: replace(run, all_reduce_ms=EXCHANGE_MS) for name, run in runs.items()}
    alone = {name: gpu.truth(run).step_ms for name, run in exchanging.items()}
    slowest = max(alone.values())
    return {
        name: replace(run, all_reduce_ms=EXCHANGE_MS + slowest - alone[name]) for name, run in exchanging.items()
    }


def write(runs: Mapping[str, Run], folder: Path) -> dict[str, Path]:
    """Write a trace for each host, as one run of a log directory; return them by host."""
    place = folder / "plugins" / "profile" / "run"
    place.mkdir(parents=True, exist_ok=True)
    paths = {name: place / f"{name}.xplane.pb" for name in runs}
    for name, run in in_step(runs).items():
        space = gpu.build(run)
        space.proto.hostnames[:] = [name]
        paths[name].write_bytes(space.serialized())
    return paths
