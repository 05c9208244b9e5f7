"""The operations that tf.vectorized_map runs in a loop over the elements, for want of a vectorized form."""

from tfdoctor.facts.operations.loop_work import GraphLoop
from tfdoctor.facts.run.operation_types import CALLS, WHILES
from tfdoctor.families.kit import *
from tfdoctor.recording import Recording

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
