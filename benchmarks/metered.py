"""What tfdoctor's hooks take: of functions that they wrap, and a small training to measure it with."""

from collections import deque
from collections.abc import Callable, Iterator
from statistics import fmean, median
from time import perf_counter_ns
from types import CellType
from typing import Any

from tfdoctor.capture.agent.process.frames import MARK

WRAPPED = "original"
"""The name by which the wrapper of the stream of events knows what it wraps."""

KEPT = 50_000
"""Calls whose time is kept, the last ones."""

TOGETHER = 128
"""Calls of which a mean is taken: steps are accounted for up to 76 at a time, in one of their calls."""


def own_cells(function: Callable[..., Any]) -> Iterator[CellType]:
    """Yield where wrappers of ours keep what they wrap, the outermost first."""
    while (code := getattr(function, "__code__", None)) and code.co_filename.endswith(MARK):
        cell = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))[WRAPPED]
        yield cell
        function = cell.cell_contents


def plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function without our wrappers."""
    *_, function = [function, *(cell.cell_contents for cell in own_cells(function))]
    return function


class Meter:
    """Measures the hooks around one function in each call, between the steps of a real training.

    A clock outside of all hooks and one inside tell what lies between them. Without the hooks, the two clocks
    are still there: the difference is what the hooks take, and steps with and without them can be compared.
    """

    def __init__(self, owner: Any, name: str) -> None:
        self.owner, self.name = owner, name
        hooked = getattr(owner, name)
        cells, own = list(own_cells(hooked)), plain(hooked)
        if not cells:
            raise SystemExit(f"{name} has no hooks: nothing is recorded")
        self.took: dict[bool, deque[int]] = {on: deque(maxlen=KEPT) for on in (True, False)}
        inside = [0, 0]
        inner = _inner(own, inside)
        for cell in cells:
            if cell.cell_contents is own:
                cell.cell_contents = inner
        self.metered = {
            True: _outer(hooked, inside, self.took[True]),
            False: _outer(inner, inside, self.took[False]),
        }
        self.turn(on=True)

    def turn(self, *, on: bool) -> None:
        """Call the function with its hooks from now on, or without."""
        setattr(self.owner, self.name, self.metered[on])

    def us(self) -> float:
        """Return what the hooks take of a call, in us."""
        with_hooks, without = (usual(self.took[on]) for on in (True, False))
        return (with_hooks - without) / 1e3


def usual(values: deque[int]) -> float:
    """Return the median of the means of so many calls in a row: in some of them, another program had the core."""
    row = list(values)
    rows = (row[at : at + TOGETHER] for at in range(0, len(row) - TOGETHER + 1, TOGETHER))
    return median(fmean(part) for part in rows)


def _inner(call: Callable[..., Any], inside: list[int]) -> Callable[..., Any]:
    def metered(*args: object, **kwargs: object) -> object:
        inside[0] = perf_counter_ns()
        try:
            return call(*args, **kwargs)
        finally:
            inside[1] = perf_counter_ns()

    return metered


def _outer(call: Callable[..., Any], inside: list[int], took: deque[int]) -> Callable[..., Any]:
    def metered(*args: object, **kwargs: object) -> object:
        begun = perf_counter_ns()
        try:
            return call(*args, **kwargs)
        finally:
            took.append(perf_counter_ns() - begun - inside[1] + inside[0])

    return metered


def training(width: int) -> Callable[[Any], None]:
    """Return the training step of two layers, for a tf.function or as it is."""
    import tensorflow as tf

    weights = [tf.Variable(tf.random.stateless_uniform([width, width], [i, 2])) for i in (0, 1)]

    def train(x: Any) -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.tanh(x @ weights[0]) @ weights[1])
        for weight, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
            weight.assign_sub(1e-6 * gradient)

    return train
