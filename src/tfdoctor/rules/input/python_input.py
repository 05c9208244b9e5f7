from tfdoctor.facts.input.input_lines import MOST_LINES, OTHERS, InputLines
from tfdoctor.facts.input.input_pipeline import GENERATOR
from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)

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
DRAW = "Where it draws some of many without replacement, draw them from a numpy.random.Generator"
ONCE = "Compute once, before training, what is the same in each epoch"


class Limits(RuleLimits):
    share: float = share_limit(0.1)
    between: float = share_limit(0.05)
    stack_samples: float = limit(5.0)
    line: float = share_limit(0.3)
    call_ms: float = limit(3.0)
    crowding: float = share_limit(0.1)
    explained: float = share_limit(0.5)
    interpreter: float = share_limit(0.1)


def check(  # noqa: PLR0913, PLR0917 - batches are made in the loop or in the pipeline: the facts of both
    pipeline: InputPipeline | Unavailable, breakdown: Breakdown, samples: StackSamples | None,
    body: LoopBody | None, conversions: Conversions | None, input_lines: InputLines | Unavailable,
    overhead: PythonOverhead | None, contention: CpuContention | None, limits: Limits = Limits(),
) -> Verdict:  # fmt: skip
    """Measure the Python of the training loop, else of the pipeline."""
    looped = in_the_loop(samples, body, conversions, breakdown, limits)
    if isinstance(looped, Finding):
        return looped
    if isinstance(pipeline, Unavailable):
        by_model = samples is not None and samples.models_at
        return looped or NotApplicable(reason=BY_MODEL if by_model else str(pipeline))
    lines = InputLines((), unknown=str(input_lines)) if isinstance(input_lines, Unavailable) else input_lines
    python = InputPython(pipeline, breakdown, lines, contention, limits)
    return python.contended(overhead) or python.crowding() or python.in_the_pipeline()


# Lines that make batches, with what each calls and its ms per step, the longest first; the share of the loop's own
# time; and TensorFlow's operation that, called one by one, makes most batches: "tf.random.uniform"
Made = tuple[Sequence[tuple[Location | None, str, float]], float, str]


def made_in_loop(samples: StackSamples | None, body_ms: float, least: float) -> Made:
    """Divide the loop's own time by the samples in lines that make batches, if they are as many as the least."""
    makers = samples.makers if samples else ()
    if samples and samples.models_at and makers:  # the line that takes most, alone
        heaviest = next(iter(summed((one.at, one.seen) for one in makers)))
        makers, least = tuple(one for one in makers if one.at == heaviest), max(least, ALONE)
    total = sum(one.seen for one in makers)
    if not samples or total < max(1, least):
        return (), 0.0, ""
    share = samples.share(makers)
    # A line is sampled in several places, of which the first is the most frequent.
    calls, seen = {one.at: one.main_call for one in reversed(makers)}, summed((one.at, one.seen) for one in makers)
    lines = [(at, calls[at], body_ms * share * number / total) for at, number in seen.items()]
    operations = summed((one.main_call, one.seen) for one in makers if OPERATION.match(one.main_call))
    main = next(iter(operations)) if 2 * sum(operations.values()) > total else ""
    return lines, share, main.replace("tensorflow.", "tf.", 1)


def in_the_loop(
    samples: StackSamples | None, body: LoopBody | None, conversions: Conversions | None, breakdown: Breakdown,
    limits: Limits,
) -> Verdict | None:  # fmt: skip
    """Compare what another way of making batches saves with the step; None where the loop makes none."""
    host_ms, between_ms = (body.host_ms, body.between_ms) if body else (0.0, 0.0)
    lines, share, operation = made_in_loop(samples if body else None, host_ms + between_ms, limits.stack_samples)
    by_model = samples is not None and samples.models_at
    new = [one for one in (conversions.arrays if conversions and not by_model else ()) if one.same is False]
    times = {
        Stage.HOST: host_ms * share + sum(array.host_ms for array in new),
        Stage.BETWEEN: between_ms * share + sum(array.between_ms for array in new),
    }
    if not (total_ms := sum(times.values())):
        return None
    at = lines[0][0] if lines else conversions.at if conversions else None
    draws = lines and lines[0][1] in PERMUTING and 2 * lines[0][2] >= (host_ms + between_ms) * share
    function = samples.function if samples else ""
    making = f"What makes a batch at {location(at)}" if by_model else "Making a batch in the training loop"
    if draws:
        action, code = DRAW, CODE["generator"]
    elif operation:
        action = f"Call {operation} inside {function or 'the tf.function'}"
        code = CODE["inside"].format(function=function or "train_step", name=operation)
    elif by_model:
        action, code = text.capitalized(_fewer(lines[0][1])), ""
    else:
        action = "Make the batches in a tf.data pipeline"
        code = "\n".join((*in_place((calls, time_ms) for _, calls, time_ms in lines), CODE["pipeline"]))
    label, remaining = "share of the step spent making a batch in Python", 0.0
    if not (draws or operation or by_model):  # it comes from elsewhere then
        remaining = min(1.0, TAKING_MS / total_ms)
        label += f", beyond the {milliseconds(TAKING_MS)} that taking one from tf.data needs"
    others = OTHERS, "", sum(time_ms for *_, time_ms in lines[MOST_LINES:])
    converting = "conversion of new arrays to tensors", "", sum(array.ms for array in new)
    table = Table.of(
        (*lines[:MOST_LINES], *(row for row in (others, converting) if row[2])),
        ("your line", lambda row: row[0]),
        ("calls", lambda row: row[1] or "-"),
        ("time per step, estimated", lambda row: ms(row[2])),
    )
    return judged(
        Measure.share(label, breakdown.share(total_ms * (1.0 - remaining)), limits.between),
        healthy=f"{making} takes {milliseconds(total_ms)} of {breakdown.each_step}",
        details=[table],
        remedies=[Remedy(action, code, at)],
        effects=Effect.of_stages(times, StepWork.MAKING_BATCHES, remaining),
    )


class InputPython(Record):
    """The Python of a pipeline, and what is measured beside it."""

    pipeline: InputPipeline
    breakdown: Breakdown
    lines: InputLines
    contention: CpuContention | None
    limits: Limits

    def contended(self, overhead: PythonOverhead | None) -> Finding | NotApplicable | None:
        """Return the finding where the input is ready in time and its Python keeps the training loop waiting.

        Only one thread runs Python at a time. The trace shows no wait for the interpreter, but the way into a call
        takes far longer than Python needs for it, as it does where other programs hold the cores.
        """
        pipeline, breakdown, limits = self.pipeline, self.breakdown, self.limits
        stages = [stage for stage in pipeline.stages if stage.python_ms]
        if breakdown.waits_for_input or not overhead or not stages:
            return None
        beside_ms = pipeline.python_beside(breakdown.step_ms) * breakdown[Stage.HOST]
        waited_ms = min(max(0.0, overhead.edges_ms - limits.call_ms), beside_ms)
        if breakdown.share(waited_ms) < limits.interpreter:
            return None
        if self.contention and self.contention.others:
            return NotApplicable(reason=f"the training loop waits in Python, and {self.contention.disturbance}")
        label = "share of the step in which the training loop waits for the interpreter, estimated"
        python_ms = sum(stage.python_ms for stage in stages)
        return self.finding(
            f"{milliseconds(python_ms)} of Python per step in the pipeline keep the training loop from the "
            f"interpreter for up to {milliseconds(waited_ms)} of {breakdown.each_step}",
            stages,
            Measure.share(label, breakdown.share(waited_ms), limits.interpreter),
            Measure("Python time per step", ms(python_ms)),
            host=Effect.of_stages({Stage.HOST: waited_ms}, StepWork.INTERPRETER),
        )

    def crowding(self) -> Finding | None:
        """Return the finding where Python of the input takes more from the compute than the step waits for it."""
        lines, contention, step_ms = self.lines, self.contention, self.breakdown.step_ms
        work_ms, (heavy, named) = lines.threads * step_ms, lines.heaviest(self.limits.stack_samples)
        if contention is None or not heavy or not contention.crowds_out(work_ms, step_ms, self.limits.crowding):
            return None
        if (taken_ms := contention.taken_ms(work_ms)) <= self.breakdown[Stage.INPUT]:
            return None
        label = "share of the step that the input's Python may take from the compute"
        share = Measure.share(label, self.breakdown.share(taken_ms), self.limits.crowding)
        work = Measure("time of threads in the input's Python per step, by stack samples", ms(work_ms))
        return Finding(
            summary=f"Threads make batches in Python for {milliseconds(work_ms)} per step, while no core is free: "
            f"the compute may take up to {milliseconds(taken_ms)} longer for it",
            evidence=(share, work, lines.table(work_ms)),
            remedies=(Remedy(f"{ONCE}{lines.takes(heavy, named, heavy[0].at)}", CODE["once"], heavy[0].at),),
            # Where the input sets the pace of the step as well, the compute alone would gain nothing.
            effects=(*contention.relief(work_ms), *_without_python(self.pipeline.stages)),
        )

    def in_the_pipeline(self) -> Verdict:
        """Compare the time in Python with the pipeline's slowest segment."""
        pipeline, breakdown, limits = self.pipeline, self.breakdown, self.limits
        stages = [stage for stage in pipeline.limiting if stage.python_ms]
        python, work, wait = sum(stage.python_ms for stage in stages), pipeline.work_ms, breakdown[Stage.INPUT]
        share = min(1.0, python / work) if work else 0.0
        measure = Measure.share("share of the pipeline's slowest segment spent in Python", share, limits.share)
        whole = Measure("Python time per step", ms(python))
        if not breakdown.waits_for_input:
            if any(dataset.python for dataset in pipeline.idle):
                return NotApplicable(reason=pipeline.why_idle)
            taken = milliseconds(sum(stage.python_ms for stage in pipeline.stages))
            summary = f"Python takes {taken} per step in the pipeline; {breakdown.little_wait}"
            return Healthy(summary=summary, evidence=(whole,))
        if share < limits.share:
            summary = f"Python takes {milliseconds(python)} per step in the slowest part of the pipeline"
            return Healthy(summary=summary, evidence=(measure, whole))
        disturbed = self.contention.disturbance if self.contention else ""
        if disturbed and work < limits.explained * wait:
            works = f"the pipeline works {milliseconds(work)} of the wait of {milliseconds(wait)}"
            return NotApplicable(reason=f"{works}, and {disturbed}")
        title = max(stages, key=lambda stage: stage.python_ms).title
        summary = f"{title} makes the step wait: {milliseconds(python)} of Python in {breakdown.each_step}"
        # the training loop may gain in addition: it no longer competes for the interpreter
        beside = pipeline.python_beside(breakdown.step_ms)
        host = {Stage.HOST: breakdown[Stage.HOST] if beside else 0.0}
        competing = Effect.of_stages(host, StepWork.INTERPRETER, 1.0 - beside)
        return self.finding(summary, stages, measure, whole, host=competing)

    def finding(
        self, summary: str, stages: Sequence[StageTime], *measures: Measure, host: Iterable[Effect]
    ) -> Finding:
        """Return the finding about all Python of these stages: what its saving counts, its first remedy changes.

        A saving is a ceiling: the share of other operations remains, and of the time between operations as much. On
        crowded cores the function's threads mostly wait for a core between two operations, or after the last.
        """
        kind, lines = self.pipeline.python_kind, self.lines
        at = max(stages, key=lambda stage: stage.python_ms).at
        heavy, share = lines.heaviest(self.limits.stack_samples)
        heavy = heavy if share >= self.limits.line else ()
        takes = lines.takes(heavy, share, at) if heavy else ""
        native = in_place((line.main_call, line.seen) for line in lines.lines)
        if kind != InputKind.PY_DATASET:
            action, code = in_tensorflow(stages, kind, native)
        elif self.contention and self.contention.crowded:  # more processes do not help
            action, code = ONCE, CODE["once"]
        else:
            action = "Load with several processes, or with more processes"
            code = "super().__init__(workers=4, use_multiprocessing=True)  # in your PyDataset's __init__"
        remedies, stays = [Remedy(f"{action}{takes}", code, at)], "Where Python has to stay, "
        if heavy:
            remedies.append(Remedy(f"{stays}{_fewer(heavy[0].main_call)}", at=heavy[0].at))
            if form := cheaper_form(heavy[0].main_call):
                remedies.append(Remedy(form, at=heavy[0].at))
        if kind != InputKind.PY_DATASET and not native:
            remedies.append(Remedy(f"{stays}make the batches in several processes", CODE["workers"]))
        columns = "stage", "your line", "Python time per step", "work per step"
        rows = ((one.title, one.at or "unknown", ms(one.python_ms), ms(one.work_ms)) for one in stages)
        table = Table(columns, tuple(rows))
        return Finding(
            summary=summary,
            evidence=(*measures, table, lines.table(sum(stage.python_ms for stage in stages))),
            remedies=tuple(remedies),
            effects=(*_without_python(stages), *host),
        )


def _without_python(stages: Iterable[StageTime]) -> Iterator[Effect]:
    """Yield what is left of stages without their Python, at least."""
    for stage in stages:
        if stage.python_ms:
            known_ms = sum(stage.operations.values()) or stage.work_ms
            yield stage.scaled(1.0 - stage.python_ms / max(stage.python_ms, known_ms), Bound.AT_MOST)


def _fewer(calls: str) -> str:
    """Return how a line takes less time that has to stay, by the function that it calls; "" is its own code."""
    without_loops = "replace loops over examples with NumPy operations on whole batches"
    return f"call {calls} less often for each batch" if calls else without_loops


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
    name = next(filter(str.isidentifier, own), "prepare")  # of no lambda
    titles = [f"{name}()" if name.isidentifier() else one.title for one, name in zip(mapped, own, strict=True)]
    generated = len(mapped) < len(stages)
    actions = ["read with tf.data instead of a generator"] if generated else []
    actions += [f"write {' and '.join(titles)} in TensorFlow operations"] if titles else []
    mapping = f"dataset = dataset.map({name}, num_parallel_calls=tf.data.AUTOTUNE)"
    code = (
        *([CODE["source"]] if generated else ()),
        *(native or (f"{CODE['function'].format(name=name)}\n",)),
        mapping,
    )
    return text.capitalized(" and ".join(actions)), "\n".join(code)
