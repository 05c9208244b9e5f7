from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)


class Limits(RuleLimits):
    serial_ms: float = limit(NEGLIGIBLE_MS)


def check(pipeline: InputPipeline, breakdown: Breakdown, cores: Cores | None, limits: Limits = Limits()) -> Verdict:
    """Look for a stage that works ahead, and for work that is done while the training loop waits."""
    serial = pipeline.serial_ms
    evidence = (
        Measure("input work while the step waits", ms(serial), ms(limits.serial_ms)),
        Measure("wait for input per step", ms(breakdown["input"])),
    )
    if pipeline.python_kind not in ("", InputKind.TF_DATA):
        return NotApplicable(
            reason=f"Keras builds the pipeline from {pipeline.python_kind}: there is no dataset to prefetch"
        )
    if pipeline.prefetches:
        ahead = next(stage for stage in pipeline.stages if stage.asynchronous)
        added = ", added by tf.data itself," if ahead.injected else ""
        return Healthy(summary=f"{ahead.kind}{added} produces batches ahead of the step", evidence=evidence)
    last = next((stage.at for stage in pipeline.stages if stage.at), None)
    return judged(
        *evidence,
        healthy=f"Producing a batch takes {milliseconds(serial)} per step",
        finding=f"No prefetch: the step waits for {milliseconds(serial)} of input work",
        wrong=breakdown.waits_for_input and serial >= limits.serial_ms,
        remedies=[Remedy("Make prefetch the last transformation", CODE["code"], last, "prefetch")],
        effects=[Effect(Stage.INPUT, overlaps=True, bound=bound_by(cores))],
    )
