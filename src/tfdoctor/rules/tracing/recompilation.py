from tfdoctor.facts.input.dataset_properties import LONGEST_SPEC
from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)


SPEC = re.compile(r"\b\w+Spec\(")
BATCHES = ("BatchDataset", "ParallelBatchDataset")


class Limits(RuleLimits):
    steps: float = limit(2.0)
    late: float = limit(1.0)
    long: float = limit(3.0)


def check(
    compiling: CompileTime, breakdown: Breakdown, program: Program | None, padding: SequencePadding | None,
    limits: Limits = Limits(),
) -> Verdict:  # fmt: skip
    """Report compilations that continue in the second half of the traced steps."""
    if not compiling.steps:
        return Healthy(summary="XLA compiled nothing in the traced steps")
    summary = f"XLA compiled in {compiling.steps} of {compiling.of} steps"
    evidence = (
        Measure("steps in which XLA compiled", count(compiling.steps), count(limits.steps)),
        Measure("traced steps", count(compiling.of)),
        Measure.share("share of the traced time spent compiling", compiling.share),
        Measure("compile time per steady step", ms(compiling.total_ms)),
        Measure("longest compilation", ms(compiling.longest_ms)),
        Measure("step time", ms(breakdown.step_ms)),
    )
    again = compiling.steps >= limits.steps and compiling.late >= limits.late
    if not again and (not compiling.apart or compiling.long < limits.long):
        return Healthy(summary=f"{summary} and not again in the trace", evidence=evidence)
    parts = ((Stage.HOST, compiling.host_ms), (Stage.BETWEEN, compiling.between_ms))
    effects = tuple(Effect(stage, 0.0, StepWork.COMPILING, ms(time_ms)) for stage, time_ms in parts)
    if compiling.apart or not compiling.total_ms:  # only other steps compile, which have no model
        effects = ()
    share = f", in {percent(compiling.share)} of the traced time" if compiling.share else ""
    of_run: tuple[RunEffect, ...] = ()
    if compiling.long >= limits.long and not effects:
        share = f", and {compiling.long} steps of the run take about as long, {duration(compiling.long_ms)} in all"
        effect = RunEffect(
            phase=Phase.STEPS, of=ms(compiling.long_ms), subject=StepWork.COMPILING, bound=Bound.AT_MOST,
            recurs=Recurrence.PER_CALL, times=compiling.long,
        )  # fmt: skip
        of_run = (effect,)
    return Finding(
        concern=Concern.LONG_STEPS,
        summary=f"{summary}{share}; the longest compilation took {milliseconds(compiling.longest_ms)}",
        evidence=evidence,
        remedies=(_remedy(program, padding),),
        effects=effects,
        run_effects=of_run,
        severity=None if effects or of_run else Severity.of(compiling.share),
    )


def _remedy(program: Program | None, padding: SequencePadding | None) -> Remedy:
    """Return what to do about the shapes of batches."""
    # By which dimensions of the batches vary: dropping a smaller batch does not help with lengths. That is in the
    # element_spec of the dataset that the training loop takes, where its batches are plain tensors.
    feeding = program.feeding if program else ()
    spec = feeding[0].element if feeding else ""
    shapes = [tensor[1].replace(" ", "").split(",") for tensor in TENSOR.finditer(spec)]
    if len(shapes) != len(SPEC.findall(spec)) or len(spec) >= LONGEST_SPEC:
        shapes = []
    rows = program.batch_size if program and shapes else None
    lengths = CODE["lengths"].format(bucketing(padding.inputs[0].buckets if padding else (), rows, fixed=True))
    whole = CODE["whole"].format(rows or "batch_size")
    padded = next((one.at for one in feeding if one.kind.strip("_").startswith("PaddedBatch")), None)
    batches = (one for one in feeding if one.kind.strip("_") in BATCHES)
    partial = [one.at for one in batches if one.parameters.drop_remainder is False]
    if any("None" in rest for _, *rest in shapes):
        return Remedy("Pad the batches to a few lengths", lengths, padded)
    if any(first == "None" for first, *_ in shapes) and len(partial) == 1 and partial[0]:
        return Remedy("Drop the last, smaller batch", whole, partial[0])
    return Remedy("Keep the input shapes of compiled functions constant", f"{whole}\n{lengths}")
