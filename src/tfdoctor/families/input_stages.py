"""The family of rules about a stage of the input that takes long while the step waits, or that needs its cores."""

import re
from collections.abc import Callable, Iterable

from tfdoctor.facts.input.input_pipeline import StageTime
from tfdoctor.facts.machine.cores import Cores
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.families.preconditions import Precondition
from tfdoctor.terms.units import ms
from tfdoctor.terms.verdict import Bound, Cell, Healthy, Table

MAPS = re.compile(r"(?:Parallel)?Map(?:V\d)?|MapAndBatch(?:V\d)?")  # The stages that a ``.map()`` runs as
# The stages that read records from files.
READERS = re.compile(r"TFRecord(?:V\d)?|TextLine|FixedLengthRecord(?:V\d)?")
# Average number of busy threads up to which a stage is sequential: they overlap a little at hand-overs.
ONE_THREAD = 1.2
# Bytes that one thread at least copies, or writes in a chain of small operations: 1 GB/s, a tenth of a core's rate.
BYTES_PER_MS = 1e6


def awaited(what: str) -> Precondition:
    """Return that the step waits for its input; otherwise it is ``what`` that does not slow it: "Storage does"."""

    def precondition(breakdown: Breakdown) -> Healthy | None:
        if breakdown.waits_for_input:
            return None
        return Healthy(summary=f"{what} not slow training: {breakdown.little_wait}")

    return precondition


def heaviest(stages: Iterable[StageTime], kinds: re.Pattern[str]) -> StageTime | None:
    """Return the stage of these kinds that works most; None where none works."""
    working = (stage for stage in stages if kinds.fullmatch(stage.kind) and stage.work_ms)
    return max(working, key=lambda stage: stage.work_ms, default=None)


def left_on_all_cores(device: Device, cores: Cores | None) -> float:
    """Return the share of a thread's time that is left at least when its work is spread over all free cores."""
    return 1.0 / cores.for_stage(device.kind) if cores else 0.0


def bound_by(cores: Cores | None) -> Bound:
    """Return how sure a saving is that needs free cores."""
    return Bound.EXPECTED if cores and cores.certain else Bound.AT_MOST


def work_table(
    stages: Iterable[StageTime],
    *columns: tuple[str, Callable[[StageTime], Cell | None]],
    heading: str = "stage",
    work: str = "work per step",
    most: int | None = None,
) -> Table:
    """Return the table of stages with their work, and further columns."""
    return Table.of(
        stages,
        (heading, lambda stage: stage.title),
        ("your line", lambda stage: stage.at),
        (work, lambda stage: ms(stage.work_ms)),
        *columns,
        most=most,
    )
