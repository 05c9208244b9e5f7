from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)


RECURRENT = "rnn"  # The package of Keras that holds recurrent layers


class Limits(RuleLimits):
    iterations: float = limit(8.0)
    share: float = share_limit(0.5)
    whole: float = share_limit(0.2)
    operation_ms: float = limit(0.1)
    named: float = share_limit(SHARE)


def check(
    work: LoopWork, breakdown: Breakdown, program: Program | None, overhead: PythonOverhead | None,
    limits: Limits = Limits(),
) -> Verdict:  # fmt: skip
    """Compare what the loops take outside of operations with the step, then loops that need not be loops."""
    if work.iterations < limits.iterations:
        return Healthy(
            summary=f"No loop inside the step iterates {limits.iterations:.0f} times or more",
            evidence=(Measure("iterations of the longest loop", count(work.iterations)),),
        )
    step = f"of {breakdown.each_step} ({milliseconds(breakdown.step_ms)})"
    share = work.scheduling_ms / breakdown.step_ms
    iterations = max(work.iterations, sum(loop.iterations for loop in work.loops))
    taken = f"{milliseconds(work.scheduling_ms)} {step} outside of operations"
    summary = f"A loop of {work.iterations:.0f} iterations takes {taken}"
    evidence = (
        Measure.share("share of the step in loops, outside of operations", share, limits.share),
        Measure("time per iteration outside of operations", ms(work.scheduling_ms / iterations)),
        *_sizes(work, program),
    )
    if share >= limits.share:
        host_ms = breakdown[Stage.HOST] - overhead.edges_ms if overhead else 0.0
        return _finding(summary, evidence, work, program, host_ms)
    chosen = work.independent(limits.iterations, limits.operation_ms)
    share = chosen.ms / breakdown.step_ms
    if share < limits.whole:
        # The time of the loops, where that is a part that needs an explanation. One whose iterations do not depend
        # on each other need not be a loop; beside it, the host's time is unknown.
        needed = [loop for loop in work.loops if not loop.independent]
        host_ms = work.scheduling_ms if len(needed) == len(work.loops) else 0.0
        device_ms = sum(loop.ms for loop in needed)
        longest = max((work.numbered if host_ms else 0.0, *(loop.iterations for loop in needed)))
        loops = f"{counted(len(needed), 'loop')} of up to {longest:.0f} iterations"
        between = f"starting the operations of {loops} takes {milliseconds(host_ms)}"
        inside = f"the operations of {loops} take {milliseconds(device_ms)}"
        times = [PartTime(Stage.HOST, ms(host_ms), between)] if host_ms else []
        times.append(PartTime(Stage.DEVICE, ms(device_ms), inside))
        known = host_ms + device_ms >= limits.named * breakdown.step_ms
        return Healthy(summary=summary, evidence=evidence, necessary=tuple(times) if known else ())
    label = "share of the step in loops whose iterations do not depend on each other"
    measures = [Measure.share(label, share, limits.whole)]
    if chosen.mean_ms:  # else no operation was recorded, because all are short
        mean, most = ms(chosen.mean_ms), ms(limits.operation_ms)
        measures.append(Measure("mean time of an operation in them", mean, most))
    each = f"A loop of {chosen.iterations:.0f} iterations that do not depend on each other takes"
    return _finding(
        f"{each} {milliseconds(chosen.ms)} {step}", (*measures, *_sizes(chosen, program)), chosen, program, 0.0
    )


def _sizes(work: LoopWork, program: Program | None) -> Iterator[Evidence]:
    if program and program.batch_size:
        yield Measure("batch size", count(program.batch_size))
    yield Table.of(
        work.loops,
        ("loop", lambda loop: loop.name or "unknown"),
        ("iterations per step", lambda loop: count(loop.iterations)),
        ("recorded operations per step", lambda loop: count(loop.operations)),
        ("time in operations", lambda loop: ms(loop.ms)),
    )


def _finding(
    summary: str, evidence: tuple[Evidence, ...], work: LoopWork, program: Program | None, host_ms: float
) -> Finding:
    """Return the finding, with what a computation without the loop saves: all but the least time of its operations.

    Operations around the loop, which divide and join its tensors, go with it: so of the host's time, ``host_ms``
    may go, which excludes the way into the call and out of it.
    """
    # Chosen by what makes the loop, as far as that is known: a recurrent layer of Keras or the user's own code.
    longest, batch = work.loops[0], program.batch_size if program else None
    layer = program.layer_by_name.get(longest.layer) if program else None
    recurrent = layer and RECURRENT in layer.module.split(".")
    at = (layer.at if layer and recurrent else None) or longest.at
    larger = Remedy("Use a larger batch, adjust the learning rate and compare the accuracy", CODE["larger"], at)
    action = "Or unroll the loop of a recurrent layer, for sequences of a few dozen time steps"
    remedies = [larger, Remedy(action, CODE["unrolled"], at)]
    if recurrent:
        remedies.append(Remedy("Or shorten the sequences"))
    elif not longest.at:
        action = "Or shorten the sequences, or replace the loop with operations on whole tensors"
        remedies.append(Remedy(action, CODE["whole"]))
    else:
        action = "Replace the loop with operations on whole tensors"
        remedies = [Remedy(action, CODE["whole"], longest.at)]
        over_batch = batch and abs(longest.iterations - batch) <= 1  # a larger batch: more iterations
        if not over_batch and not longest.independent:
            remedies.append(replace(larger, action=f"Or {larger.action[0].lower()}{larger.action[1:]}", at=None))
    waiting_ms = max(work.scheduling_ms, work.waiting_ms, host_ms)
    return Finding(
        summary=summary,
        evidence=evidence,
        remedies=tuple(remedies),
        effects=(
            *Effect.of_stages({Stage.HOST: waiting_ms}, StepWork.SCHEDULING),
            *(row.scaled(0.0, Bound.AT_MOST) for loop in work.loops for row in loop.rows),
        ),
    )
