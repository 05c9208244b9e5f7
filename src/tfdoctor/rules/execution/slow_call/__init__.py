from math import ceil, sqrt

from tfdoctor.facts.step_time.host_lines import SPREAD, LongStepLines
from tfdoctor.families.kit import *
from tfdoctor.rules.execution.slow_call.single_calls import SingleCalls

__doc__, CODE = page(__file__)


# Time from which on somebody can read what comes next, in ms: TensorBoard looks for new data every 5 s, the default
# of its --reload_interval.
READ_MS = 5000.0
MOST_STEPS = 100  # Steps from one write to the next at most: 99 % of its time is saved then


class Limits(RuleLimits):
    share: float = share_limit(0.05)
    samples: float = limit(5.0)


# The calls whose time the account of the run has as a phase of its own.
OF_THE_RUN: dict[SlowCall | None, RunCall] = {
    SlowCall.PREDICT: RunCall.PREDICT, SlowCall.EVALUATE: RunCall.EVALUATE, SlowCall.SAVE: RunCall.SAVE,
}  # fmt: skip


def check(  # noqa: PLR0913, PLR0917 - the calls, and all facts that say what a change may spare with them
    slow: SlowCalls, breakdown: Breakdown, long: LongStepLines | None, single: SingleOperations | None,
    body: LoopBody | None, examples: SingleCalls | None, phases: RunPhases | None, run: RunSteps | None,
    operations: Operations | None, limits: Limits = Limits(),
) -> Verdict:  # fmt: skip
    """Compare the time of such calls with the step, and writes with how often they can be read."""
    writes = [line for line in slow.lines if line.kind is SlowCall.WRITE]
    summaries = [row for row in operations.rows if row.of_summary] if operations else []
    in_graph = _in_graph(summaries, slow.step_count)
    rest_ms = max(0.0, breakdown.step_ms - sum(line.ms for line in (*writes, *in_graph)))
    often = min(MOST_STEPS, ceil(READ_MS / max(rest_ms, 1.0)))  # in so many steps one write is enough
    sampled = [line for line in slow.lines if often > 1 or line not in writes]
    many, in_graph = examples.calls if examples else (), in_graph if often > 1 else []
    lines = sorted((*sampled, *(one.line for one in many), *in_graph), key=lambda line: -line.ms)
    seen, all_ms = sum(line.seen for line in lines), sum(line.ms for line in lines)
    measures = (
        Measure.share("share of the step in such calls", breakdown.share(all_ms), limits.share),
        Measure("stack samples in such calls", count(seen), count(limits.samples)),
    )
    if breakdown.share(all_ms) < limits.share or seen < limits.samples:
        little = f"Calls such as predict and set_weights take {milliseconds(all_ms)} per step"
        if not all_ms:
            little = "No call such as predict and set_weights is seen in typical steps"
        if not all_ms and long and long.timed and long.slow_calls:
            only = f"Calls of {long.slow_calls[0].call} ({location(long.slow_calls[0].at)})"
            little = f"{only} are not in typical steps, only in long ones; see step-outlier"
        return Healthy(summary=little, evidence=measures)
    kinds = ([line for line in lines if line.kind is kind] for kind in {one.kind: None for one in lines})
    groups = sorted(kinds, key=lambda group: -sum(one.ms for one in group))
    first, time_ms = groups[0][0], sum(line.ms for line in groups[0])
    called = f"{first.kind} in every step"
    if one := next((one for one in many if one.line == first), None):
        called = f"{one.name} {number(round(one.calls))} times in every step, for single examples,"
    takes = f"Calling {called} takes about {milliseconds(time_ms)} of each step, mostly at {location(first.at)}"
    table = Table.of(
        lines,
        ("your line", lambda line: line.at),
        ("call", lambda line: str(line.kind)),
        ("seen in steps", lambda line: f"{len(line.steps)} of {slow.step_count}"),
        ("time per step (estimate)", lambda line: ms(line.ms)),
        most=SHOWN_ROWS,
    )
    write = Remedy(
        f"Write every {often} steps", CODE["write"].format(often), changes="nothing is written in the other steps"
    )
    in_step = replace(write, code=CODE["write-in-graph"].format(often))
    apart = Measure("time from one write to the next, without the writing itself", ms(rest_ms), ms(READ_MS))
    each = [
        figure
        for one in many
        for figure in (
            Measure(f"calls of {one.name} per step", count(one.calls)),
            Measure(f"time of a call of {one.name}", ms(one.call_ms)),
        )
    ]
    return Finding(
        summary=f"{takes}; all such calls take {milliseconds(all_ms)}" if groups[1:] else takes,
        evidence=(*measures, *((apart,) if writes or in_graph else ()), *each, table),
        remedies=tuple(
            replace((INSTEAD | {SlowCall.WRITE: in_step if one in in_graph else write})[one.kind], at=one.at)
            for one, *_ in groups
        ),
        effects=(
            *_effects(sampled, [one.line for one in many], breakdown, single, body),
            *(row.scaled(1.0 / often) for row in summaries if row.ms and in_graph),
        ),
        run_effects=tuple(_beside(writes, often, phases, run)),
        about=OF_THE_RUN.get(first.kind),
        alike=len(groups) - 1,
    )


def _in_graph(rows: Sequence[OperationTime], steps: int) -> list[TimedLine]:
    """Return the lines of summaries in the graph of most steps; operations in branches are of their summary's."""
    if max((row.calls for row in rows), default=0.0) < SPREAD:
        return []
    names = {row: row.name.partition("write_summary")[0] for row in rows}
    at = {names[row]: row.at for row in rows if row.at}
    groups: dict[Location, list[OperationTime]] = defaultdict(list)
    for row in rows:
        if line := row.at or at.get(names[row]):
            groups[line].append(row)
    return [
        TimedLine.slow(
            line, SlowCall.WRITE, round(steps * max(row.calls for row in group)), range(steps),
            {Stage.DEVICE: sum(row.ms for row in group)},
        )
        for line, group in groups.items()
    ]  # fmt: skip


def _effects(
    sampled: Sequence[TimedLine], many: Sequence[TimedLine], breakdown: Breakdown, single: SingleOperations | None,
    body: LoopBody | None,
) -> Iterator[Effect]:  # fmt: skip
    """Yield the calls' time in each part of the step, as a ceiling, and the waits for pipelines that they build.

    Of a part, sampled calls may take as much as their samples allow for, within Python's time there: one standard
    error more than they show; the number of samples is a Poisson count, whose standard error is its root.
    The operations that Python runs one by one may all be theirs: samples show only a part of short ones.
    """
    taken = {stage: sum(line.parts_ms.get(stage, 0.0) for line in sampled) for stage in Stage}
    seen = sum(line.seen for line in sampled)
    own_ms = {Stage.HOST: body.host_ms, Stage.BETWEEN: body.between_ms} if body else {}
    alone_ms = single.inside_ms + single.between_ms if single and sampled else 0.0
    times = {}
    for stage in (Stage.HOST, Stage.BETWEEN):
        most = min(own_ms.get(stage, 0.0), taken[stage] * (1.0 + 1.0 / sqrt(seen))) if seen else 0.0
        times[stage] = max(taken[stage], most) if taken[stage] else 0.0
    times[Stage.DEVICE] = max(taken[Stage.DEVICE], alone_ms)
    for stage in times:
        times[stage] += sum(line.parts_ms.get(stage, 0.0) for line in many)
    yield from Effect.of_stages(times, StepWork.SLOW_CALLS)
    waits_ms, all_ms = taken[Stage.INPUT], breakdown[Stage.INPUT]
    if waits_ms and all_ms:
        yield Effect(Stage.INPUT, max(0.0, 1.0 - waits_ms / all_ms), bound=Bound.AT_MOST)


def _beside(
    writes: Sequence[TimedLine], often: int, phases: RunPhases | None, run: RunSteps | None
) -> Iterator[RunEffect]:
    """Yield what writing in fewer steps leaves of the time in the account of the run.

    Traced steps may take less than others. Of the time in steps, functions of TensorFlow are left out.
    """
    at, times = {line.at for line in writes}, defaultdict[Phase, float](float)
    for line in phases.lines if phases and phases.whole else ():
        if line.at in at:
            times[line.phase] += line.ms - (line.executes_ms if line.phase is Phase.STEPS else 0.0)
    for phase, time_ms in times.items():
        yield RunEffect(
            phase=phase, of=ms(time_ms), subject=StepWork.SLOW_CALLS, scales=1.0 / often,
            recurs=Recurrence.PER_STEP, times=run.count if run else 0, bound=Bound.AT_MOST,
        )  # fmt: skip


# What to do instead of calls other than writes; the sources are linked on the page.
INSTEAD: dict[SlowCall | None, Remedy] = {
    SlowCall.FIT: Remedy("Call train_on_batch, or fit once over all batches", CODE["fit"]),
    SlowCall.PREDICT: Remedy("Call predict_on_batch, or the model in a tf.function", CODE["predict"]),
    SlowCall.EVALUATE: Remedy("Call test_on_batch, or evaluate once per epoch", CODE["evaluate"]),
    SlowCall.WEIGHTS: Remedy("Update the variables in place, in a tf.function", CODE["assign"]),
    SlowCall.CLONE: Remedy("Clone the model once, before the loop"),
    SlowCall.SAVE: Remedy("Save every 1,000 steps or once per epoch", CODE["save"]),
    SlowCall.MODEL: Remedy("Call the model in a tf.function", CODE["model"]),
    SlowCall.SINGLE: Remedy(
        "Stack the examples and call the function once, if no call needs the result of another", CODE["stacked"]
    ),
    SlowCall.CLEAR: Remedy("Clear the session once, before the model is built"),
}
