"""Which steps of several hosts are the same step of the job."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tfdoctor.facts.scale.host_steps import NS_PER_MS, HostSteps

NEAR = 0.5
"""Share of the median step: starts further apart may belong to different steps."""


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
