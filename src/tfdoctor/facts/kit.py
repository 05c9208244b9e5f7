"""What a fact is written with: ``from tfdoctor.facts.kit import *``; other facts are imported by name."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import cached_property
from itertools import pairwise
from math import ceil, inf, prod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tfdoctor.facts.chart import Unavailable
from tfdoctor.recording import Recording
from tfdoctor.terms.humanize import milliseconds, number, percent
from tfdoctor.terms.kinds import DeviceKind, Phase, RunCall, StepSource
from tfdoctor.terms.record import Record
from tfdoctor.terms.units import ms, nbytes
from tfdoctor.terms.verdict import Bound, Effect, Location, Stage
from tfdoctor.trace import Event, EventType, Intervals, Plane, Trace

__all__ = ["Any", "Bound", "Callable", "Collection", "Counter", "DeviceKind", "Effect", "Event", "EventType"]
__all__ += ["Intervals", "Iterable", "Iterator", "Location", "Mapping", "NDArray", "Phase", "Plane", "Record"]
__all__ += ["Recording", "RunCall", "Self", "Sequence", "Stage", "StepSource", "StrEnum", "Trace"]
__all__ += ["Unavailable", "cached_property", "ceil", "defaultdict", "inf", "milliseconds", "ms", "nbytes"]
__all__ += ["np", "number", "pairwise", "percent", "prod", "re", "replace"]
