from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.input.input_pipeline import GENERATOR
from tfdoctor.facts.input.training_inputs import Conversions
from tfdoctor.facts.step_time.host_time import LoopBody, PythonOverhead
from tfdoctor.facts.step_time.sampled_steps import StackSamples
from tfdoctor.facts.step_time.timed_line import summed
from tfdoctor.rules.python_input.input_lines import MOST_LINES, OTHERS, InputLines
from tfdoctor.terms import text
from tfdoctor.terms.kinds import InputKind

__doc__, CODE = page(__file__)
TOPIC, SINCE = Topic.INPUT, "0.1.0"
BY_HAND = "the Python of the stage has to be rewritten in TensorFlow operations"

# What `next()` of a tf.data iterator takes of a step whose batch is ready: 0.07 ms for one tensor, 0.09 ms for five
# (TensorFlow 2.21, an AMD EPYC, 2026-11-24). Passing one array of 25 kB instead of a tensor took the call 0.01 ms
# more, five small arrays 0.08 ms.
TAKING_MS = 0.07
ALONE = 10  # Stack samples in a line that is named without the others: with 10 its time is uncertain by a third
# Without replacement they permute all n, also for k of them: 1.8 ms for 48 of 80,000, where a Generator takes 0.01
# ms (NumPy 2.4 on an AMD EPYC, 2026-11-29).
PERMUTING = ("numpy.random.choice", "numpy.random.permutation")
# An operation of TensorFlow's API, but none that makes a tensor of an array: a tf.function does that, too.
OPERATION = re.compile(r"tensorflow\.(?!python\.|(?:constant|convert_to_tensor)$)")
SMALL = 0.1  # Share of the time below which a function is not worth an example of what replaces it
DECODED = {"PIL.load": "PIL.open", "PIL.convert": "PIL.open"}  # One call of TensorFlow decodes and converts

BY_MODEL = (
    "the results of a model that the loop runs decide what is in a batch, so that no pipeline can make it ahead, "
    "and no line that makes a batch has enough stack samples to be named"
)
LOOP = "Making a batch in the training loop"
LOOP = "Making a batch in the training loop"
DRAW = "Where it draws some of many without replacement, draw them from a numpy.random.Generator"
STAYS = "Where Python has to stay"
SOURCE = "dataset = tf.data.Dataset.from_tensor_slices(examples)  # or what else the generator reads: paths, rows"


@dataclass(frozen=True, slots=True)
class Limits:
    share: float = share_limit(0.1)
    between: float = share_limit(0.05)
    stack_samples: float = limit(5.0)
    line: float = share_limit(0.3)
    call_ms: float = limit(3.0)
    crowding: float = share_limit(0.1)
    explained: float = share_limit(0.5)
    interpreter: float = share_limit(0.1)


def check(  # noqa: PLR0913, PLR0917 - batches are made in the loop or in the pipeline: the facts of both
    pipeline: InputPipeline | Unavailable,
    breakdown: Breakdown,
    samples: StackSamples | None,
    body: LoopBody | None,
    conversions: Conversions | None,
    input_lines: InputLines | Unavailable,
    overhead: PythonOverhead | None,
    contention: CpuContention | None,
    limits: Limits = Limits(),
) -> Verdict:
    """Measure the Python of the training loop, else of the pipeline."""
    made = Making.of(samples, body, conversions, limits.stack_samples)
    if made.total_ms:
        verdict = made.verdict(breakdown, samples.function if samples else "", limits)
        if isinstance(verdict, Finding) or isinstance(pipeline, Unavailable):
            return verdict
    if isinstance(pipeline, Unavailable):
        return NotApplicable(reason=BY_MODEL if made.by_model else str(pipeline))
    python = InputPython(pipeline, breakdown, input_lines, contention, limits)
    return python.contended(overhead) or python.crowding() or python.in_the_pipeline()


class Making(Record):
    """What making batches in the training loop takes, in ms per step: of lines, and of converting new arrays.

    ``times`` divides the sum among the stages of the step; ``at`` is the line that takes most.
    """

    times: Mapping[Stage, float]
    lines: tuple[tuple[Location | None, str, float], ...]  # with what each calls, the longest first
    converting_ms: float
    at: Location | None
    by_model: bool  # the loop's own model decides what is in a batch: no pipeline can make it
    draws: bool  # half of it is one of ``PERMUTING``
    operation: str  # of TensorFlow's, called one by one, which make most batches: "tf.random.uniform"

    @classmethod
    def of(
        cls,
        samples: StackSamples | None,
        body: LoopBody | None,
        conversions: Conversions | None,
        least_samples: float,
    ) -> Self:
        """Divide the loop's own time by the samples in lines that make batches, if they are enough."""
        makers = samples.makers if samples and body else ()
        by_model = bool(samples and samples.models_at)
        seen = summed((maker.at, maker.seen) for maker in makers)
        if by_model and makers:  # the line that takes most, alone
            (at, _), *_ = seen.items()
            makers, seen = tuple(line for line in makers if line.at == at), {at: seen[at]}
            least_samples = max(least_samples, ALONE)
        if (total := sum(seen.values())) < least_samples:
            makers = ()
        arrays = conversions.arrays if conversions and not by_model else ()
        new = [array for array in arrays if array.same is False]
        share = samples.share(makers) if samples else 0.0
        host_ms, between_ms = (body.host_ms, body.between_ms) if body else (0.0, 0.0)
        times = {
            Stage.HOST: host_ms * share + sum(array.host_ms for array in new),
            Stage.BETWEEN: between_ms * share + sum(array.between_ms for array in new),
        }
        # A line is sampled in several places, of which the first is the most frequent.
        calls = {maker.at: maker.main_call for maker in reversed(makers)}
        all_ms = (host_ms + between_ms) * share
        lines = tuple((at, calls[at], all_ms * n / total) for at, n in seen.items() if makers)
        operations = summed((one.main_call, one.seen) for one in makers if OPERATION.match(one.main_call))
        main = next(iter(operations)) if 2 * sum(operations.values()) > total else ""
        operation = main.replace("tensorflow.", "tf.", 1)
        draws = bool(lines) and lines[0][1] in PERMUTING and 2 * lines[0][2] >= all_ms
        at = lines[0][0] if lines else conversions.at if conversions else None
        return cls(times, lines, sum(array.ms for array in new), at, by_model, draws, operation)

    @property
    def total_ms(self) -> float:
        """The time of all of it."""
        return sum(self.times.values())

    def verdict(self, breakdown: Breakdown, function: str, limits: Limits) -> Verdict:
        """Compare what another way of making batches saves with the step."""
        # What it takes to get a batch from elsewhere; nothing where it is still made here.
        here = self.draws or self.operation or (self.by_model and self.lines)
        taking_ms = 0.0 if here else TAKING_MS
        remaining = min(1.0, taking_ms / self.total_ms)
        share = breakdown.share(self.total_ms * (1.0 - remaining))
        label = "share of the step spent making a batch in Python"
        if taking_ms:
            label += f", beyond the {milliseconds(taking_ms)} that taking one from tf.data needs"
        measure = Measure.share(label, share, limits.between)
        making = f"What makes a batch at {location(self.at)}" if self.by_model else LOOP
        summary = f"{making} takes {milliseconds(self.total_ms)} of {breakdown.each_step}"
        if self.draws:
            remedy = Remedy(DRAW, CODE["generator"], self.at)
        elif self.operation:
            code = CODE["inside"].format(function=function or "train_step", name=self.operation)
            remedy = Remedy(f"Call {self.operation} inside {function or 'the tf.function'}", code, self.at)
        elif self.by_model:
            remedy = Remedy(text.capitalized(_fewer(self.lines[0][1])), at=self.at)
        else:
            code = "\n".join((*in_place((calls, time_ms) for _, calls, time_ms in self.lines), CODE["pipeline"]))
            remedy = Remedy("Make the batches in a tf.data pipeline", code, self.at)
        others_ms = sum(time_ms for *_, time_ms in self.lines[MOST_LINES:])
        converting = "conversion of new arrays to tensors", "", self.converting_ms
        table = Table.of(
            (*self.lines[:MOST_LINES], *(row for row in ((OTHERS, "", others_ms), converting) if row[2])),
            ("your line", lambda row: row[0]),
            ("calls", lambda row: row[1] or "-"),
            ("time per step, estimated", lambda row: ms(row[2])),
        )
        effects = Effect.of_stages(self.times, StepWork.MAKING_BATCHES, remaining)
        return judged(measure, healthy=summary, details=[table], remedies=[remedy], effects=effects)


class InputPython(Record):
    """The Python of a pipeline, and what is measured beside it."""

    pipeline: InputPipeline
    breakdown: Breakdown
    lines: InputLines | Unavailable
    contention: CpuContention | None
    limits: Limits

    def in_the_pipeline(self) -> Verdict:
        """Compare the time in Python with the pipeline's slowest segment."""
        pipeline, breakdown, limits = self.pipeline, self.breakdown, self.limits
        stages = [stage for stage in pipeline.limiting if stage.python_ms]
        python, work, wait = _python_ms(stages), pipeline.work_ms, breakdown[Stage.INPUT]
        share = python / work if work else 0.0
        label = "share of the pipeline's slowest segment spent in Python"
        whole = Measure("Python time per step", ms(python))
        measures = (Measure.share(label, min(1.0, share), limits.share), whole)
        if not breakdown.waits_for_input:
            if any(dataset.python for dataset in pipeline.idle):
                return NotApplicable(reason=pipeline.why_idle)
            taken = f"Python takes {milliseconds(_python_ms(pipeline.stages))} per step in the pipeline"
            return Healthy(summary=f"{taken}; {breakdown.little_wait}", evidence=(whole,))
        if share < limits.share:
            taken = f"Python takes {milliseconds(python)} per step"
            return Healthy(summary=f"{taken} in the slowest part of the pipeline", evidence=measures)
        disturbed = self.contention.disturbance if self.contention else ""
        if disturbed and work < limits.explained * wait:
            works = f"the pipeline works {milliseconds(work)} of the wait of {milliseconds(wait)}"
            return NotApplicable(reason=f"{works}, and {disturbed}")
        return self._finding(stages, measures)

    def contended(self, overhead: PythonOverhead | None) -> Finding | NotApplicable | None:
        """Return the finding where the input is ready in time and its Python keeps the training loop waiting.

        Only one thread runs Python at a time. The trace shows no wait for the interpreter, but the way into a call
        takes far longer than Python needs for it, as it does where other programs hold the cores.
        """
        pipeline, breakdown, limits = self.pipeline, self.breakdown, self.limits
        if breakdown.waits_for_input or not overhead:
            return None
        beside_ms = pipeline.python_beside(breakdown.step_ms) * breakdown[Stage.HOST]
        waited_ms = min(max(0.0, overhead.edges_ms - limits.call_ms), beside_ms)
        stages = [stage for stage in pipeline.stages if stage.python_ms]
        share, python = breakdown.share(waited_ms), _python_ms(stages)
        if share < limits.interpreter or not stages:
            return None
        if self.contention and self.contention.others:
            return NotApplicable(reason=f"the training loop waits in Python, and {self.contention.disturbance}")
        label = "share of the step in which the training loop waits for the interpreter, estimated"
        measures = (Measure.share(label, share, limits.interpreter), Measure("Python time per step", ms(python)))
        waiting = Effect.of_stages({Stage.HOST: waited_ms}, StepWork.INTERPRETER)
        return replace(
            self._finding(stages, measures),
            summary=f"{milliseconds(python)} of Python per step in the pipeline keep the training loop from the "
            f"interpreter for up to {milliseconds(waited_ms)} of {breakdown.each_step}",
            effects=(*map(_effect, stages), *waiting),
        )

    def crowding(self) -> Finding | None:
        """Return the finding where Python of the input takes more from the compute than the step waits for it."""
        lines, contention, step_ms = self.lines, self.contention, self.breakdown.step_ms
        if contention is None or isinstance(lines, Unavailable):
            return None
        work_ms, heavy = lines.threads * step_ms, lines.heaviest
        taken_ms, least = contention.taken_ms(work_ms), self.limits.crowding
        named = heavy and lines.samples >= self.limits.stack_samples
        if not (
            named and taken_ms > self.breakdown[Stage.INPUT] and contention.crowds_out(work_ms, step_ms, least)
        ):
            return None
        label = "share of the step that the input's Python may take from the compute"
        share = Measure.share(label, self.breakdown.share(taken_ms), least)
        work = Measure("time of threads in the input's Python per step, by stack samples", ms(work_ms))
        return Finding(
            summary=f"Threads make batches in Python for {milliseconds(work_ms)} per step, while no core is free: "
            f"the compute may take up to {milliseconds(taken_ms)} longer for it",
            evidence=(share, work, lines.table(work_ms)),
            remedies=(_once(lines.takes(heavy[0].at), heavy[0].at),),
            effects=contention.relief(work_ms),
        )

    def _finding(self, stages: Sequence[StageTime], measures: tuple[Measure, ...]) -> Finding:
        """Return the finding about all Python of these stages: what its saving counts, its first remedy changes.

        The training loop may gain in addition: it no longer competes for the interpreter.
        """
        breakdown, slowest = self.breakdown, max(stages, key=lambda stage: stage.python_ms)
        python, beside = _python_ms(stages), self.pipeline.python_beside(breakdown.step_ms)
        columns = "stage", "your line", "Python time per step", "work per step"
        rows = ((one.title, one.at or "unknown", ms(one.python_ms), ms(one.work_ms)) for one in stages)
        unknown = Table(("lines that take the time",), ((f"unknown, because {self.lines}",),))
        lines = unknown if isinstance(self.lines, Unavailable) else self.lines.table(python)
        host = {Stage.HOST: breakdown[Stage.HOST] if beside else 0.0}
        competing = Effect.of_stages(host, StepWork.INTERPRETER, 1.0 - beside)
        return Finding(
            summary=f"{slowest.title} makes the step wait: {milliseconds(python)} of Python in "
            f"{breakdown.each_step}",
            evidence=(*measures, Table(columns, tuple(rows)), lines),
            remedies=tuple(self.remedies(stages, slowest.at)),
            effects=(*map(_effect, stages), *competing),
        )

    def remedies(self, stages: Sequence[StageTime], at: Location | None) -> Iterator[Remedy]:
        """Yield the change of all these stages, and what saves a part of the time where Python has to stay."""
        lines = InputLines(()) if isinstance(self.lines, Unavailable) else self.lines
        heavy = lines.heaviest if lines.samples >= self.limits.stack_samples else ()
        if heavy and lines.share(*heavy) < self.limits.line:
            heavy = ()
        takes, kind = lines.takes(at) if heavy else "", self.pipeline.python_kind
        native = in_place((line.calls, line.seen) for line in lines.lines)
        if kind != InputKind.PY_DATASET:
            action, code = in_tensorflow(stages, kind, native)
            yield Remedy(f"{action}{takes}", code, at)
        elif self.contention and self.contention.crowded:  # more processes do not help
            yield _once(takes, at)
        else:
            code = "super().__init__(workers=4, use_multiprocessing=True)  # in your PyDataset's __init__"
            yield Remedy(f"Load with several processes, or with more processes{takes}", code, at)
        if heavy:
            yield Remedy(f"{STAYS}, {_fewer(heavy[0].calls)}", at=heavy[0].at)
        if kind != InputKind.PY_DATASET and not native:
            yield Remedy(f"{STAYS}, make the batches in several processes", CODE["workers"])


def _python_ms(stages: Sequence[StageTime]) -> float:
    return sum(stage.python_ms for stage in stages)


def _effect(stage: StageTime) -> Effect:
    """Return a ceiling: the share of other operations remains, and of the time between operations as much.

    On crowded cores the function's threads mostly wait for a core between two operations, or after the last.
    """
    known = max(stage.python_ms, sum(stage.operations.values()) or stage.work_ms)
    return stage.scaled(1.0 - stage.python_ms / known if known else 0.0, Bound.AT_MOST)


def _fewer(calls: str) -> str:
    """Return how a line takes less time that has to stay, by the function that it calls; "" is its own code."""
    without_loops = "replace loops over examples with NumPy operations on whole batches"
    return f"call {calls} less often for each batch" if calls else without_loops


def _once(takes: str, at: Location | None) -> Remedy:
    return Remedy(f"Compute once, before training, what is the same in each epoch{takes}", CODE["once"], at)


def in_place(calls: Iterable[tuple[str, float]]) -> tuple[str, ...]:
    """Return TensorFlow's code in place of the functions that take most, of full names and times or samples.

    The page has it by package and name (https://www.tensorflow.org/api_docs/python/tf), and a test runs each. Of
    functions in C, samples name only what a line calls by a module's name: no methods of generators or texts.
    """
    taken: dict[str, float] = defaultdict(float)
    for function, amount in calls:
        package, name = function.partition(".")[0], function.rpartition(".")[2]
        taken[f"{package}.{name}"] += amount  # modules between them differ from version to version
    least = SMALL * sum(taken.values())
    large = (key for key in sorted(taken, key=lambda key: -taken[key]) if taken[key] >= least)
    found = (CODE.get(DECODED.get(key, key)) for key in large)
    return tuple(dict.fromkeys(code for code in found if code))


def in_tensorflow(stages: Sequence[StageTime], python_kind: str, native: Sequence[str]) -> tuple[str, str]:
    """Return the change of all stages, and its code: TensorFlow's where it is known, else its general shape."""
    mapped = [s for s in stages if s.kind != GENERATOR and python_kind != InputKind.GENERATOR]
    own = [one.dataset.function if one.dataset and one.dataset.function_at else "" for one in mapped]
    names = [name if name.isidentifier() else "" for name in own]  # of no lambda
    name = next(filter(None, names), "prepare")
    titles = [f"{name}()" if name else stage.title for stage, name in zip(mapped, names, strict=True)]
    generated = len(mapped) < len(stages)
    actions = ["read with tf.data instead of a generator"] if generated else []
    actions += [f"write {' and '.join(titles)} in TensorFlow operations"] if titles else []
    source = (SOURCE,) if generated else ()
    mapping = f"dataset = dataset.map({name}, num_parallel_calls=tf.data.AUTOTUNE)"
    code = (*source, *(native or (f"{CODE['function'].format(name=name)}\n",)), mapping)
    return text.capitalized(" and ".join(actions)), "\n".join(code)
