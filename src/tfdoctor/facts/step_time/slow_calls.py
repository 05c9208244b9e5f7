"""Calls of TensorFlow and Keras that cost much per call, made in every step, by stack samples."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.run.program import Places
from tfdoctor.facts.step_time.breakdown import Breakdown, working
from tfdoctor.facts.step_time.eager_work import EagerWork
from tfdoctor.facts.step_time.host_lines import HostTime, LineWork, work_of
from tfdoctor.facts.step_time.sampled_steps import SampledSteps, sampling_began, times_of
from tfdoctor.recording import Recording
from tfdoctor.recording.program import SeenPlace
from tfdoctor.terms.verdict import Location, Stage
from tfdoctor.trace import Intervals, Trace

SPREAD = 0.5
"""Share of the steps that samples would be seen in, if the call ran in every step, below which it runs more rarely.
Samples of a call in every second step are seen in half as many steps or more."""


SHORT_FIT = 2
"""Steps of a ``fit`` up to which its own cost is in every step: in longer ones, most steps are not the first."""

SEVERAL_FITS = 5
"""Calls of ``fit`` from which on they are a loop: scripts train in several phases, or warm up."""


class SlowCall(StrEnum):
    """A kind of call that is made for a whole run or epoch, and takes much longer than a step needs it to."""

    FIT = "fit"
    PREDICT = "predict"
    EVALUATE = "evaluate"
    WEIGHTS = "get_weights and set_weights"
    CLONE = "clone_model"
    SAVE = "save"
    CLEAR = "clear_session"
    MODEL = "a model outside of a tf.function"
    SINGLE = "a tf.function for one example"  # see SingleCalls
    WRITE = "functions that write logs or files"  # for somebody who reads them


FUNCTIONS = {
    "fit": SlowCall.FIT,
    "predict": SlowCall.PREDICT,
    "evaluate": SlowCall.EVALUATE,
    "get_weights": SlowCall.WEIGHTS,
    "set_weights": SlowCall.WEIGHTS,
    "clone_model": SlowCall.CLONE,
    "save": SlowCall.SAVE,
    "save_weights": SlowCall.SAVE,
    "save_model": SlowCall.SAVE,
    "clear_session": SlowCall.CLEAR,
}
"""Names of functions of Keras (2 and 3) and of TensorFlow's checkpoints; nothing else there has these names."""

LAYER_CALL = "layer.__call__"
"""The end of the full name in lower case: of Layer in Keras, or of its module before Python 3.11."""

PACKAGES = ("keras", "tf_keras", "tensorflow")

WRITES = re.compile(
    r"(tensorflow\.(summary|python\.ops\.summary_ops_v2|print$)|tensorboardX?|mlflow|wandb|neptune|comet_ml|clearml"
    r"|aim|logging|loguru|csv|_csv|imageio)\b"
    r"|(builtins\.print|cv2\.imwrite|PIL\..*\.save|matplotlib\..*(savefig|imsave)|pandas\..*\.to_(csv|json|excel))$"
)
"""Functions, by their full names, that write what somebody reads: summaries, logs, tables, images."""


def slow_call(function: str) -> SlowCall | None:
    """Return what a function is, by its full name ("keras.src.models.cloning.clone_model"); None for any other."""
    if WRITES.match(function):
        return SlowCall.WRITE
    package, name = function.partition(".")[0], function.rpartition(".")[2]
    if package not in PACKAGES:
        return None
    return SlowCall.MODEL if function.lower().endswith(LAYER_CALL) else FUNCTIONS.get(name)


@dataclass(frozen=True, slots=True)
class SlowLine:
    """A line of the user's that makes such a call; ms per training step by the part of the step it falls into.

    The parts are the host's, between calls, the device's (operations that the call runs one by one), and waits for
    the input pipeline that the call has built. The time in which it runs a compiled function is left out: that is
    its useful work. ``steps`` is how many traced steps show it.
    """

    at: Location
    call: SlowCall
    seen: int
    steps: int
    parts_ms: Mapping[Stage, float]

    @property
    def ms(self) -> float:
        """The time of all parts, in ms per training step."""
        return sum(self.parts_ms.values())


@dataclass(frozen=True, slots=True)
class SlowCalls:
    """The lines whose samples are mostly in such calls, longest first; only calls spread over the steps.

    A call that runs once per epoch or every 100 steps is seen in few steps and is left out. Lines between a
    ``get_weights`` and a ``set_weights`` of the same function count as one work with them.
    """

    lines: tuple[SlowLine, ...] = ()
    step_count: int = 0  # steady steps that were sampled

    @classmethod
    def measure(
        cls,
        recording: Recording,
        trace: Trace,
        sampled_steps: SampledSteps,
        breakdown: Breakdown,
        framework: Framework,
        eager: EagerWork | None,
    ) -> Self:
        """Count the samples of the steady steps; of a step that itself runs eagerly, no calls of models.

        Raises:
            Unavailable: the stack was not sampled, or the samples have no time in the trace.
        """
        record = sampled_steps.python
        if record is None:
            raise Unavailable(f"the stack of Python was not sampled{framework.with_tfdoctor}")
        began_ps = sampling_began(record, trace)
        if began_ps is None:
            raise Unavailable("the stack samples have no time in the trace")
        steps, ran = sampled_steps.steps, sampled_steps.activity
        others = {Stage.DEVICE: ran.of(Stage.DEVICE), Stage.INPUT: working(ran, Stage.INPUT)}
        time, locate = HostTime.of(steps, ran), Places.of(recording)
        sampled = [Sampled.of(place, began_ps, time, others) for place in record.places]
        each_ms = breakdown.step_ms / max(1, sum(one.seen for one in sampled))
        groups = _slow_groups([one for one in sampled if one.seen])
        wanted = _regular(groups, sampled) - _own_calls(recording, eager)
        lines = (_line(kind, group, each_ms, locate) for kind, group in groups if kind in wanted)
        longest_first = sorted(filter(None, lines), key=lambda line: -line.ms)
        return cls(tuple(longest_first), len(steps.steady_steps))

    @property
    def ms(self) -> float:
        """The time of all lines, in ms per training step."""
        return sum(line.ms for line in self.lines)

    def part_ms(self, stage: Stage) -> float:
        """Return the time of all lines in one part of the step, in ms per training step."""
        return sum(line.parts_ms.get(stage, 0.0) for line in self.lines)

    @property
    def places(self) -> frozenset[Location]:
        """The lines themselves."""
        return frozenset(line.at for line in self.lines)


@dataclass(frozen=True, slots=True, eq=False)
class Sampled:
    """The samples of a place in steady steps: their steps and the part of the step that each falls into."""

    place: SeenPlace
    steps: NDArray[np.int64]  # (seen,) numbers of steady steps
    parts: tuple[Stage | None, ...]  # (seen,) None is a part that no line is responsible for

    @classmethod
    def of(cls, place: SeenPlace, began_ps: int, time: HostTime, others: Mapping[Stage, Intervals]) -> Self:
        """Sort the samples of a place; what a call does in ``others``, where that counts first, is its own."""
        times = times_of(place, began_ps)
        times = times[time.spans.holds(times)]
        steps = np.searchsorted(time.spans.starts_ps, times, side="right") - 1
        return cls(place, steps, tuple(time.part(int(at), others) for at in times))

    @property
    def seen(self) -> int:
        """The number of samples."""
        return len(self.parts)

    @property
    def call(self) -> SlowCall | None:
        """The kind of the call that the place's line makes."""
        return slow_call(self.place.calls)

    @property
    def is_useful(self) -> bool:
        """Whether these samples are the work that the call is made for: of ``fit``, the training call itself."""
        trains = self.call is SlowCall.FIT and self.place.inside
        return trains or work_of(self.place) is LineWork.ENTERING


def _own_calls(recording: Recording, eager: EagerWork | None) -> set[SlowCall]:
    """Return the calls that are the training: models of eager steps, and ``fit``, unless each has few steps."""
    own = {SlowCall.MODEL} if eager and eager.operations_ms > eager.functions_ms else set()
    seen = recording.manifest.steps if recording.manifest else None
    settings = recording.program.run if recording.program else None
    if seen is None or settings is None:
        return own | {SlowCall.FIT}
    steps, epochs = settings.steps_per_epoch, settings.epochs
    fits = seen.rounds or (seen.seen / (steps * epochs) if steps and epochs else 0)
    are_short = fits >= SEVERAL_FITS and seen.seen <= SHORT_FIT * fits
    return own if are_short else own | {SlowCall.FIT}


Group = list[Sampled]


def _slow_groups(sampled: Iterable[Sampled]) -> list[tuple[SlowCall, Group]]:
    """Return the lines that are mostly in slow calls, and those that compute weights between two of them."""
    by_line: dict[object, Group] = defaultdict(list)
    for one in sampled:
        if one.place.at is not None:
            by_line[one.place.at].append(one)
    kinds = {at: _kind(group) for at, group in by_line.items()}
    weights = [
        one for at, group in by_line.items() if kinds[at] is SlowCall.WEIGHTS for one in group if one.place.caller
    ]
    return [
        (kind, group) for at, group in by_line.items() if (kind := kinds[at] or _between_weights(group, weights))
    ]


def _kind(group: Sequence[Sampled]) -> SlowCall | None:
    """Return the slow call that at least half of a line's samples are in."""
    counts: Counter[SlowCall | None] = Counter()
    for one in group:
        counts[one.call] += one.seen
    kind, seen = max(counts.items(), key=lambda item: item[1] if item[0] else 0)
    return kind if 2 * seen >= counts.total() else None


def _between_weights(group: Sequence[Sampled], weights: Sequence[Sampled]) -> SlowCall | None:
    """Return WEIGHTS for a line between two such lines of one function that the same line calls."""
    for one in group:
        same = [
            other.place.at[1]
            for other in weights
            if other.place.at
            and one.place.at
            and (other.place.at[0], other.place.caller) == (one.place.at[0], one.place.caller)
        ]
        if same and one.place.at and min(same) < one.place.at[1] < max(same):
            return SlowCall.WEIGHTS
    return None


def _regular(groups: Iterable[tuple[SlowCall, Group]], sampled: Iterable[Sampled]) -> set[SlowCall]:
    """Return the calls whose samples are spread over the steps as those of work in every step are.

    Their steps are compared with those that as many of all samples would hit by chance: some steps are sampled more
    often than others.
    """
    every = np.concatenate([np.zeros(0, np.int64), *(one.steps for one in sampled)])
    per_step = np.unique(every, return_counts=True)[1]
    steps: dict[SlowCall, list[int]] = defaultdict(list)
    for kind, group in groups:
        steps[kind] += [int(step) for one in group for step in one.steps]
    regular = set()
    for kind, seen in steps.items():
        missed = (1.0 - len(seen) / per_step.sum()) ** per_step if seen else np.ones(1)
        if len(set(seen)) >= SPREAD * float((1.0 - missed).sum()):
            regular.add(kind)
    return regular


def _line(kind: SlowCall, group: Group, each_ms: float, locate: Places) -> SlowLine | None:
    at = locate(group[0].place.at)
    if at is None:
        return None
    counts: Counter[Stage] = Counter()
    for one in group:
        if not one.is_useful:
            counts.update(part for part in one.parts if part is not None)
    steps = {int(step) for one in group for step in one.steps}
    parts = {stage: seen * each_ms for stage, seen in counts.items()}
    return SlowLine(at, kind, counts.total(), len(steps), parts)
