"""Which steps of several hosts are the same step of the job, and how far apart the hosts begin and end it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.scale.host_steps import NS_PER_MS, STEPPED_MS, HostSteps

NEAR = 0.5  # Share of the median step: starts further apart may belong to different steps

ONE_CLOCK = "all hosts ran on one machine and share its clock"

NTP = (
    "this assumes that the machines' clocks agree, as NTP ensures, usually within a millisecond on a local "
    "network; the recording cannot verify this"
)

# Share of the median step: ends of one step further apart mean that clocks disagree, or that hosts do not train
# synchronously.
DISAGREE = 0.5


class MatchedBy(StrEnum):
    """How the steps of several hosts were matched."""

    NUMBER = "number"
    CLOCK = "clock"
    ORDER = "order"


@dataclass(frozen=True, slots=True)
class Matching:
    """The m steps that all hosts have: (m,) places among each host's steps, by the host's name."""

    by: MatchedBy
    places: Mapping[str, tuple[int, ...]]

    @property
    def count(self) -> int:
        """How many steps all hosts have."""
        return len(next(iter(self.places.values()), ()))

    def table(self, values: Mapping[str, Sequence[float]]) -> NDArray[Any]:
        """Return (hosts, m) of what each host has one value of per step, the hosts by name."""
        return np.array([np.array(values[name])[list(self.places[name])] for name in sorted(values)])


def match(hosts: Mapping[str, HostSteps]) -> Matching:
    """Match by number where the numbers are the run's, else by the clock, else in their order."""
    if all(host.counted for host in hosts.values()) and (matching := _by_number(hosts)).count:
        return matching
    if all(host.starts_ns for host in hosts.values()) and (matching := _by_clock(hosts)).count:
        return matching
    shortest = min(len(host.numbers) for host in hosts.values())
    return Matching(MatchedBy.ORDER, dict.fromkeys(hosts, tuple(range(shortest))))


def _by_number(hosts: Mapping[str, HostSteps]) -> Matching:
    common = sorted(set.intersection(*(set(host.numbers) for host in hosts.values())))
    places = {name: dict(zip(host.numbers, count(), strict=False)) for name, host in hosts.items()}
    return Matching(MatchedBy.NUMBER, {name: tuple(own[one] for one in common) for name, own in places.items()})


def _by_clock(hosts: Mapping[str, HostSteps]) -> Matching:
    """Match each step of one host with the nearest of the others, unless that is ambiguous.

    That host is the first by name of those with the fewest steps, so that the order of the hosts does not
    matter.
    """
    first = min(hosts, key=lambda name: (len(hosts[name].numbers), name))
    starts = np.array(hosts[first].starts_ns, np.int64)
    nearest = np.stack([_nearest(starts, host) for host in hosts.values()])
    kept = nearest[:, (nearest >= 0).all(axis=0)]
    return Matching(MatchedBy.CLOCK, dict(zip(hosts, map(tuple, kept.tolist()), strict=True)))


def _nearest(starts: NDArray[np.int64], host: HostSteps) -> NDArray[np.int64]:
    """Return (n,) the place of the host's nearest step; -1 where none is near, or it is near to several starts."""
    host_starts = np.array(host.starts_ns, np.int64)
    reach = NEAR * float(np.median(host.total_ms)) * NS_PER_MS
    distance = np.abs(host_starts[None, :] - starts[:, None])
    nearest, near = distance.argmin(axis=1), distance.min(axis=1) < reach
    alone = np.bincount(nearest[near], minlength=len(host_starts)) == 1
    return np.where(near & alone[nearest], nearest, -1)


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
