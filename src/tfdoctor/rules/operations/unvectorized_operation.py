import re

from tfdoctor.facts.operations.loop_work import GraphLoop
from tfdoctor.facts.run.operation_types import CALLS, WHILES
from tfdoctor.families.kit import *
from tfdoctor.recording import Recording

__doc__, CODE = page(__file__)

# The loop that replaces an operation, under the operation's name (parallel_for/pfor.py: _fallback_converter).
LOOP = re.compile(r"(.*\bloop_body(?:_\d+)?/.+)/pfor/while(?:_\d+)?")


class FallbackLoop(Record, kw_only=True):
    """A loop in place of an operation; times in ms per step.

    ``loop`` is what was measured of it in the step, on a CPU; ``rows`` are its operations, on any device; ``stage``
    is the stage of the pipeline that runs it, and ``stage_ms`` its time outside of operations that are in no such
    loop.
    """

    name: str  # of the operation: "loop_body/histogram_fixed_width"
    type: str  # "HistogramFixedWidth"
    at: Location | None = None
    layer: str = ""
    of_data: bool = False  # in a function of the pipeline
    loop: GraphLoop | None = None
    rows: tuple[OperationTime, ...] = ()
    stage: StageTime | None = None
    stage_ms: float = 0.0


class FallbackLoops(Record):
    """The loops that ran in the traced steps, in the step and in the pipeline.

    ``scheduling_ms`` is what a CPU's executor takes to start operations in them, where the step has no other loop.
    """

    loops: tuple[FallbackLoop, ...] = ()
    scheduling_ms: float = 0.0

    @classmethod
    def measure(
        cls, recording: Recording, work: LoopWork | Unavailable, operations: Operations | None,
        pipeline: InputPipeline | None,
    ) -> Self:  # fmt: skip
        """Look for them in the recorded graphs, and for their time in the trace.

        Raises:
            Unavailable: the program was not recorded.
        """
        if recording.program is None:
            raise Unavailable("the program was not recorded")
        place = Places.of(recording)
        known = []
        for graph in recording.program.graphs:
            types = {one.name: one.type for one in graph.operations}
            for one in graph.operations:
                replaced = LOOP.fullmatch(one.name) if one.type in WHILES else None
                kind = types.get(replaced[1], "") if replaced else ""
                if replaced and kind and not CALLS.search(kind):  # one that runs a graph is the user's own
                    data, at = graph.kind == "dataset", place(one.at)
                    known.append(FallbackLoop(name=replaced[1], type=kind, at=at, layer=one.layer, of_data=data))
        measured = () if isinstance(work, Unavailable) else work.loops
        rows = operations.rows if operations else ()
        stages = pipeline.stages if pipeline else ()
        ran = []
        for lost in dict.fromkeys(known):  # the step and the pipeline use the same names
            scope = f"{lost.name}/pfor/"
            own = tuple(row for row in rows if scope in row.name)
            loop = next((loop for loop in measured if loop.name.startswith(f"{scope}while")), None)
            stage = next((stage for stage in stages if any(scope in name for name in stage.operations)), None)
            if lost.of_data and stage:
                others = sum(ms for name, ms in stage.operations.items() if "/pfor/while" not in name)
                ran.append(replace(lost, stage=stage, stage_ms=max(0.0, stage.work_ms - others)))
            elif not lost.of_data and (loop or own):
                ran.append(replace(lost, loop=loop, rows=own))
        alone = 0 < sum(loop.loop is not None for loop in ran) == len(measured)
        return cls(tuple(ran), work.scheduling_ms if alone and isinstance(work, LoopWork) else 0.0)


class Limits(RuleLimits):
    share: float = share_limit(0.05)


def check(
    found: FallbackLoops, breakdown: Breakdown, device: Device, pipeline: InputPipeline | None,
    limits: Limits = Limits(),
) -> Verdict:  # fmt: skip
    """Add up the loops of the step, and those of the stages that limit the pipeline."""
    loops = found.loops
    if not loops:
        return Healthy(summary="No operation of a vectorized_map is seen to run in a loop")
    measured = (row for one in loops if one.loop for row in one.loop.rows)  # on a CPU
    in_step = [row.scaled(0.0, Bound.AT_MOST) for row in measured if row.ms]
    in_step += Effect.of_stages({Stage.HOST: found.scheduling_ms}, StepWork.SCHEDULING)
    in_stages = []
    if pipeline and (breakdown.waits_for_input or in_step):  # else the step does not end earlier
        stages = {one.stage.path: one for one in loops if one.stage and one.stage in pipeline.limiting}
        in_stages = [
            one.stage.scaled(1.0 - one.stage_ms / one.stage.work_ms, Bound.AT_MOST)
            for one in stages.values()
            if one.stage and one.stage.work_ms
        ]
    seen = [*in_step, *in_stages] if breakdown.waits_for_input else in_step
    taken = sum(effect.of.value * (1.0 - effect.scales) for effect in seen if effect.of)
    share = breakdown.share(taken)
    names = ", ".join(dict.fromkeys(one.type for one in loops))
    summary = f"vectorized_map runs {names} once for each element, in {counted(len(loops), 'loop')}"
    table = Table.of(
        loops,
        ("operation", lambda one: one.type),
        ("your line", lambda one: one.at),
        ("runs in", lambda one: one.stage.title if one.stage else one.layer or "the step"),
        ("iterations per step", lambda one: count(one.loop.iterations) if one.loop else None),
        most=10,
    )
    on_gpu = device.kind != DeviceKind.CPU and any(one.rows for one in loops)
    at = next((one.at for one in loops if one.at), None)
    return judged(
        Measure("time in such loops, per step", ms(taken)),
        Measure.share("share of the step in such loops", share, limits.share),
        table,
        healthy=f"{summary}, which take little of the step",
        finding=summary,
        wrong=share >= limits.share or on_gpu,
        remedies=[Remedy("Write the function for a whole batch", CODE["batched"], at)],
        effects=(*in_step, *in_stages),
    )
