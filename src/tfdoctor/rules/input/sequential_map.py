from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)
PRECONDITIONS = (pipeline_ran,)

AUTOTUNE = -1  # tf.data.AUTOTUNE

CHOSEN = "its num_parallel_calls is AUTOTUNE: tf.data itself chose one thread, or its source is slow"
IN_PYTHON = "it runs Python, which more threads do not speed up; see python-input"
ONE_POOL = "its private thread pool has one thread, regardless of num_parallel_calls; see disabled-autotune"


class Limits(RuleLimits):
    threads: float = limit(1.2)


def check(
    pipeline: InputPipeline, breakdown: Breakdown, device: Device, cores: Cores | None,
    options: DataOptions | None, limits: Limits = Limits(),
) -> Verdict:  # fmt: skip
    """Look for a sequential map in the segment that limits the pipeline."""
    maps = [stage for stage in pipeline.stages if MAPS.fullmatch(stage.kind)]
    if not breakdown.waits_for_input:
        several = counted(len(maps), "map").capitalize()
        return Healthy(summary=f"{several} in the pipeline, and {breakdown.little_wait}")
    stage = heaviest(pipeline.limiting, MAPS)
    if stage is None or stage.concurrency > limits.threads:
        parallel = sum(one.concurrency > limits.threads or one.asynchronous for one in maps)
        ran = f"{parallel} of {with_noun(len(maps), 'map')} ran in parallel"
        return Healthy(summary=f"No sequential map limits the pipeline ({ran})")
    given = stage.dataset.parameters.num_parallel_calls if stage.dataset else None
    reason = why_not(
        (stage.python_ms > stage.work_ms / 2, IN_PYTHON),
        (given == AUTOTUNE, CHOSEN),
        ((given or 0) > 1, f"its num_parallel_calls is {given}: its source is slow, or no other thread was free"),
        (options and options.pool == 1, ONE_POOL),
    )
    if reason:
        return NotApplicable(reason=f"{stage.title} runs sequentially, but {reason}")
    speedup = cores and Measure("maximum speedup of the map on all free cores", count(cores.for_stage(device.kind)))
    code = f"dataset = dataset.map({stage.function}, num_parallel_calls=tf.data.AUTOTUNE)"
    action = "Let tf.data choose the number of threads for the map"
    return Finding(
        summary=f"{stage.title} limits the pipeline and runs on one thread",
        evidence=(
            Measure("map time per step", ms(stage.work_ms)),
            Measure("busy threads in the map", count(stage.concurrency), count(limits.threads)),
            *((speedup,) if speedup else ()),
        ),
        remedies=(Remedy(action, code, stage.at, "parallel-map"),),
        effects=(stage.scaled(left_on_all_cores(device, cores), bound_by(cores), spreads=True),),
    )
