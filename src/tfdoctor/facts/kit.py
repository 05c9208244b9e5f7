"""What a fact is written with: ``from tfdoctor.facts.kit import *``; other facts are imported by name."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import cached_property
from itertools import groupby, pairwise
from math import ceil, inf, prod
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from tfdoctor.facts.chart import Unavailable
from tfdoctor.recording import Recording
from tfdoctor.recording.program import RecordedGraph, RecordedOperation, RunSettings, SourceLine
from tfdoctor.terms.humanize import location, milliseconds, number, percent, with_noun
from tfdoctor.terms.kinds import DeviceKind, InputKind, Phase, RunCall, RunWork, StepSource
from tfdoctor.terms.record import Record, field
from tfdoctor.terms.units import count, ms, nbytes, ratio
from tfdoctor.terms.verdict import Bound, Cell, Effect, Location, Measure, Remedy, Stage, Table
from tfdoctor.trace.intervals import Intervals, pairs_of
from tfdoctor.trace.model import Event, EventType, Line, Plane, Trace

K = TypeVar("K")
V = TypeVar("V")
N = TypeVar("N", int, float)


def by_key(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Return the values of each key, all in the order in which they come."""
    groups: dict[K, list[V]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def reached(begin: Iterable[K], then: Callable[[K], Iterable[K]]) -> frozenset[K]:
    """Return all that these lead to, themselves included."""
    found = {*begin}
    ahead = [*found]
    while ahead:
        new = {*then(ahead.pop())} - found
        found |= new
        ahead += new
    return frozenset(found)


def exclusive(claims: Mapping[K, Intervals]) -> dict[K, Intervals]:
    """Return the time that each claims and none before it does: each instant belongs to the first."""
    taken, parts = Intervals(), dict[K, Intervals]()
    for key, claimed in claims.items():
        parts[key] = claimed - taken
        taken |= claimed
    return parts


def summed(amounts: Iterable[tuple[K, N]]) -> dict[K, N]:
    """Add amounts by key; the key with most comes first, of equal ones the first that came."""
    groups = by_key(amounts)
    return dict(sorted(((key, sum(own)) for key, own in groups.items()), key=lambda one: -one[1]))
