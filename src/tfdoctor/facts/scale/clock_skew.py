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
    """Compare when the hosts began and ended the matched steps."""
    for name, host in sorted(hosts.items()):
        if host.clock_missing:
            raise Unavailable(f"{name}: {host.clock_missing}")
    if matching.by is MatchedBy.ORDER:
        raise Unavailable("neither step numbers nor clocks show which steps belong together")
    names = sorted(hosts)
    starts = _late({name: hosts[name].starts_ns for name in names}, matching)
    ends = _late({name: hosts[name].ends_ns for name in names}, matching)
    _refuse_strange(ends, hosts)
    return ClockSkew(
        start_ms=float(np.median(starts.max(axis=0))),
        end_ms=float(np.median(ends.max(axis=0))),
        late_ms={name: float(np.median(starts[at])) for at, name in enumerate(names)},
        basis=ONE_CLOCK if _one_machine(hosts) else NTP,
    )


def _late(moments: Mapping[str, tuple[int, ...]], matching: Matching) -> NDArray[np.float64]:
    """Return (hosts, steps) ms after the median host, the hosts by name."""
    rows = [[moments[name][place] for place in matching.places[name]] for name in moments]
    origin = min(map(min, rows))  # so that differences are exact in float64
    table = np.array([[ns - origin for ns in row] for row in rows], float) / NS_PER_MS
    late: NDArray[np.float64] = table - np.median(table, axis=0)
    return late


def _refuse_strange(ends: NDArray[np.float64], hosts: Mapping[str, HostSteps]) -> None:
    apart = float(np.median(ends.max(axis=0) - ends.min(axis=0)))
    step = float(np.median([np.median(host.total_ms) for host in hosts.values()]))
    if apart > DISAGREE * step:
        raise Unavailable(
            f"the same step ends {apart:.3g} ms apart on different hosts: their clocks disagree, or they do "
            "not train synchronously"
        )


def _one_machine(hosts: Mapping[str, HostSteps]) -> bool:
    """Say whether all hosts are one machine: the same name, and monotonic clocks that began together."""
    boots = [host.boot_ns for host in hosts.values()]
    known = [boot for boot in boots if boot is not None]
    names = {host.machine for host in hosts.values()}
    if len(known) < len(boots) or len(names) > 1 or "" in names:
        return False
    return max(known) - min(known) <= STEPPED_MS * NS_PER_MS
