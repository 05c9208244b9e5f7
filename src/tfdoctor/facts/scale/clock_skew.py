"""How far apart hosts begin and end the same step, by their wall clocks."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.scale.host_matching import MatchedBy, Matching
from tfdoctor.facts.scale.host_steps import NS_PER_MS, STEPPED_MS, HostSteps

ONE_CLOCK = "all hosts ran on one machine and share its clock"

NTP = (
    "this assumes that the machines' clocks agree, as NTP ensures, usually within a millisecond on a local "
    "network; the recording cannot verify this"
)

DISAGREE = 0.5
"""Share of the median step: ends of one step further apart mean that clocks disagree, or that hosts do not
train synchronously."""


@dataclass(frozen=True, slots=True)
class ClockSkew:
    """Medians over the matched steps, in ms: the slowest host minus the median host.

    ``late_ms`` is by how much each host starts after the median host (negative: before it).
    """

    start_ms: float
    end_ms: float
    late_ms: Mapping[str, float]
    basis: str  # what is assumed of the clocks


def clock_skew(hosts: Mapping[str, HostSteps], matching: Matching) -> ClockSkew:
    """Compare when the hosts began and ended the matched steps.

    Raises:
        Unavailable: their clocks, or the steps, cannot be compared.
    """
    for name, host in sorted(hosts.items()):
        if host.clock_missing:
            raise Unavailable(f"{name}: {host.clock_missing}")
    if matching.by is MatchedBy.ORDER:
        raise Unavailable("neither step numbers nor clocks show which steps belong together")
    moments = ({name: getattr(host, edges) for name, host in hosts.items()} for edges in ("starts_ns", "ends_ns"))
    starts, ends = (_late(matching.table(edges)) for edges in moments)
    apart = float(np.median(ends.max(axis=0) - ends.min(axis=0)))
    if apart > DISAGREE * float(np.median([np.median(host.total_ms) for host in hosts.values()])):
        raise Unavailable(
            f"the same step ends {apart:.3g} ms apart on different hosts: their clocks disagree, or they do "
            "not train synchronously"
        )
    # One machine has one name, and monotonic clocks that began together.
    machines = {host.machine for host in hosts.values()}
    boots = [host.boot_ns for host in hosts.values() if host.boot_ns is not None]
    alone = len(boots) == len(hosts) and len(machines) == 1 and "" not in machines
    return ClockSkew(
        start_ms=float(np.median(starts.max(axis=0))),
        end_ms=float(np.median(ends.max(axis=0))),
        late_ms={name: float(np.median(row)) for name, row in zip(sorted(hosts), starts, strict=True)},
        basis=ONE_CLOCK if alone and max(boots) - min(boots) <= STEPPED_MS * NS_PER_MS else NTP,
    )


def _late(table: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return (hosts, steps) ms after the median host; of differences, which are exact in float64."""
    times = (table - table.min()).astype(float) / NS_PER_MS
    late: NDArray[np.float64] = times - np.median(times, axis=0)
    return late
