from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.input.input_pipeline import GENERATOR
from tfdoctor.facts.input.training_inputs import Conversions
from tfdoctor.facts.step_time.loop_body import LoopBody
from tfdoctor.facts.step_time.python_overhead import PythonOverhead
from tfdoctor.facts.step_time.stack_samples import StackSamples
from tfdoctor.rules.python_input.input_lines import InputLine, InputLines
from tfdoctor.rules.python_input.making import MOST_LINES, OTHERS, Making
from tfdoctor.rules.python_input.tensorflow_calls import in_place
from tfdoctor.terms import text
from tfdoctor.terms.kinds import InputKind

__doc__, CODE = page(__file__)

TOPIC = Topic.INPUT
SINCE = "0.1.0"
BY_HAND = "the Python of the stage has to be rewritten in TensorFlow operations"


@dataclass(frozen=True, slots=True)
class Limits:
    share: float = share_limit(
        0.1,
        "Smallest share of the pipeline's slowest segment that Python must take; below it, replacing the "
        "Python code is not worth the work",
    )
    between: float = share_limit(
        0.05,
        "Smallest share of the step that making a batch in Python must take, between two calls of the "
        "training function",
    )
    stack_samples: float = limit(5.0, "Stack samples needed in lines that make batches before these lines count")
    line: float = share_limit(
        0.3, "Smallest share of the input's Python, by stack samples, that one function must take to be named"
    )
    call_ms: float = limit(
        3.0,
        "Longest time in ms that entering and leaving a training call takes by itself (as in small-batch); in "
        "longer ones the call waits for the interpreter",
    )
    crowding: float = share_limit(
        0.1,
        "Smallest share of the step that Python of the input may take from the compute of a CPU run that does not "
        "wait: with two threads that sleep between batches of arrays it was 1 %, with librosa in them 19 %",
    )
    explained: float = share_limit(
        0.5,
        "Smallest share of the wait that the pipeline's own work must be where other programs hold the cores: of "
        "two programs that share a core each gets half of it",
    )
    interpreter: float = share_limit(
        0.1,
        "Smallest share of the step in which the training loop waits for the interpreter while the input runs "
        "Python; below it, the operating system may be the cause",
    )


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
        verdict = _in_the_loop(made, breakdown, samples, limits)
        if isinstance(verdict, Finding) or isinstance(pipeline, Unavailable):
            return verdict
    if isinstance(pipeline, Unavailable):
        return NotApplicable(reason=BY_MODEL if made.by_model else str(pipeline))
    python = InputPython(pipeline, breakdown, input_lines, contention, limits)
    contended = None
    if not breakdown.waits_for_input and overhead:
        contended = python.contended(overhead)
    return contended or python.crowding() or python.in_the_pipeline()


BY_MODEL = (
    "the results of a model that the loop runs decide what is in a batch, so that no pipeline can make it ahead, "
    "and no line that makes a batch has enough stack samples to be named"
)


def _in_the_loop(made: Making, breakdown: Breakdown, samples: StackSamples | None, limits: Limits) -> Verdict:
    """Compare the making of batches in the training loop with the step."""
    share = breakdown.share(made.total_ms * (1.0 - made.remaining))
    label = "share of the step spent making a batch in Python"
    if made.taking_ms:
        label += f", beyond the {milliseconds(made.taking_ms)} that taking one from tf.data needs"
    measure = Measure.share(label, share, limits.between)
    what = f"What makes a batch at {location(made.at)}" if made.by_model else "Making a batch in the training loop"
    summary = f"{what} takes {milliseconds(made.total_ms)} of {breakdown.each_step}"
    if share < limits.between:
        return Healthy(summary=summary, evidence=(measure,))
    if made.draws:
        remedy = Remedy(DRAW, CODE["generator"], made.at)
    elif made.operation:
        function = samples.function if samples else ""
        code = CODE["inside"].format(function=function or "train_step", name=made.operation)
        remedy = Remedy(f"Call {made.operation} inside {function or 'the tf.function'}", code, made.at)
    elif made.by_model:
        remedy = Remedy(text.capitalized(_fewer(made.lines[0][1])), at=made.at)
    else:
        code = "\n".join((*in_place((calls, line_ms) for _, calls, line_ms in made.lines), CODE["pipeline"]))
        remedy = Remedy("Make the batches in a tf.data pipeline", code, made.at)
    return Finding(
        summary=summary,
        evidence=(measure, made.table),
        remedies=(remedy,),
        effects=Effect.of_stages(made.times, StepWork.MAKING_BATCHES, made.remaining),
    )


@dataclass(frozen=True, slots=True)
class InputPython:
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

    def contended(self, overhead: PythonOverhead) -> Finding | NotApplicable | None:
        """Return the finding where the input is ready in time and its Python keeps the training loop waiting.

        Only one thread runs Python at a time. The trace shows no wait for the interpreter, but the way into a call
        takes far longer than Python needs for it, as it does where other programs hold the cores.
        """
        pipeline, breakdown, limits = self.pipeline, self.breakdown, self.limits
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
        if lines.samples < self.limits.stack_samples or not heavy or taken_ms <= self.breakdown[Stage.INPUT]:
            return None
        if not contention.crowds_out(work_ms, step_ms, least):
            return None
        label = "share of the step that the input's Python may take from the compute"
        share = Measure.share(label, self.breakdown.share(taken_ms), least)
        work = Measure("time of threads in the input's Python per step, by stack samples", ms(work_ms))
        return Finding(
            summary=f"Threads make batches in Python for {milliseconds(work_ms)} per step, while no core is free: "
            f"the compute may take up to {milliseconds(taken_ms)} longer for it",
            evidence=(share, work, _line_table(lines, work_ms)),
            remedies=(_once(lines.takes(heavy[0].at), heavy[0].at),),
            effects=contention.relief(work_ms),
        )

    def _finding(self, stages: Sequence[StageTime], measures: tuple[Measure, ...]) -> Finding:
        """Return the finding about all Python of these stages: what its saving counts, its first remedy changes.

        The training loop may gain in addition: it no longer competes for the interpreter.
        """
        breakdown, slowest = self.breakdown, max(stages, key=lambda stage: stage.python_ms)
        python, beside = _python_ms(stages), self.pipeline.python_beside(breakdown.step_ms)
        table = Table.of(
            stages,
            ("stage", lambda stage: stage.title),
            ("your line", lambda stage: stage.at),
            ("Python time per step", lambda stage: ms(stage.python_ms)),
            ("work per step", lambda stage: ms(stage.work_ms)),
        )
        host = {Stage.HOST: breakdown[Stage.HOST] if beside else 0.0}
        competing = Effect.of_stages(host, StepWork.INTERPRETER, 1.0 - beside)
        return Finding(
            summary=f"{slowest.title} makes the step wait: {milliseconds(python)} of Python in "
            f"{breakdown.each_step}",
            evidence=(*measures, table, _line_table(self.lines, python)),
            remedies=tuple(self._remedies(stages, slowest.at)),
            effects=(*map(_effect, stages), *competing),
        )

    def _remedies(self, stages: Sequence[StageTime], at: Location | None) -> Iterator[Remedy]:
        """Yield the change of all these stages, and what saves a part of the time where Python has to stay."""
        lines = InputLines(()) if isinstance(self.lines, Unavailable) else self.lines
        heavy = lines.heaviest if lines.samples >= self.limits.stack_samples else ()
        if heavy and lines.share(*heavy) < self.limits.line:
            heavy = ()
        takes, kind = lines.takes(at) if heavy else "", self.pipeline.python_kind
        native = in_place((line.calls, line.seen) for line in lines.lines)
        if kind != InputKind.PY_DATASET:
            action, code = _in_tensorflow(stages, kind, native)
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


STAYS = "Where Python has to stay"

DRAW = "Where it draws some of many without replacement, draw them from a numpy.random.Generator"


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


def _in_tensorflow(stages: Sequence[StageTime], python_kind: str, native: Sequence[str]) -> tuple[str, str]:
    """Return the change of all stages, and its code: TensorFlow's where it is known, else its general shape."""
    generated = [s for s in stages if s.kind == GENERATOR or python_kind == InputKind.GENERATOR]
    mapped = [stage for stage in stages if stage not in generated]
    own = [one.dataset.function if one.dataset and one.dataset.function_at else "" for one in mapped]
    names = [name if name.isidentifier() else "" for name in own]  # of no lambda
    name = next(filter(None, names), "prepare")
    titles = [f"{name}()" if name else stage.title for stage, name in zip(mapped, names, strict=True)]
    actions = ["read with tf.data instead of a generator"] if generated else []
    actions += [f"write {' and '.join(titles)} in TensorFlow operations"] if titles else []
    source = (SOURCE,) if generated else ()
    mapping = f"dataset = dataset.map({name}, num_parallel_calls=tf.data.AUTOTUNE)"
    code = (*source, *(native or (f"{CODE['function'].format(name=name)}\n",)), mapping)
    return text.capitalized(" and ".join(actions)), "\n".join(code)


SOURCE = "dataset = tf.data.Dataset.from_tensor_slices(examples)  # or what else the generator reads: paths, rows"


def _line_table(lines: InputLines | Unavailable, python_ms: float) -> Table:
    """Divide the Python among the lines that the stack samples show."""
    if isinstance(lines, Unavailable):
        return Table(("lines that take the time",), ((f"unknown, because {lines}",),))

    def taken(*some: InputLine) -> tuple[Cell, Cell]:
        return ratio(lines.share(*some)), ms(lines.share(*some) * python_ms)

    rows: list[tuple[Cell, ...]] = [
        (line.at, line.caller or "-", line.calls or "-", *taken(line)) for line in lines.lines[:MOST_LINES]
    ]
    if others := lines.lines[MOST_LINES:]:
        rows.append((OTHERS, "-", "-", *taken(*others)))
    columns = ("your line", "called at", "calls", "share of the samples", "time per step, estimated")
    return Table(columns, tuple(rows))
