from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)

PLAIN = re.compile(r"Map(?:V\d)?")  # A map that runs on its consumer's thread


class Limits(RuleLimits):
    full: float = share_limit(0.7)
    serial_ms: float = limit(NEGLIGIBLE_MS)


# What one option does to the pipeline: a sentence, the option and its value, the effects and the evidence.
Consequence = tuple[str, str, object, tuple[Effect, ...], tuple[Evidence, ...]]


def check(
    options: DataOptions, pipeline: InputPipeline, breakdown: Breakdown, device: Device, cores: Cores | None,
    limits: Limits = Limits(),
) -> Verdict:  # fmt: skip
    """Look for the effect of the options on a pipeline that the step waits for."""
    if options.by_keras:
        return Healthy(summary="The script sets no options: Keras builds the pipeline from arrays")
    off = dict.fromkeys(filter(None, (options.no_parallel_map, options.no_prefetch)))
    settings = [f"switch off {option}" for option in off]
    settings += [f"set private_threadpool_size={options.pool}"] if options.pool else []
    if not settings:
        return Healthy(summary="No dataset option disables automatic tuning or limits threads")
    named = f"The dataset options {' and '.join(settings)}"
    if not breakdown.waits_for_input:
        return Healthy(summary=f"{named}, and {breakdown.little_wait}")
    critical = pipeline.critical
    if critical and critical.python_ms > critical.work_ms / 2:
        one = f"{critical.title} runs Python, which uses one thread at a time with any options"
        return NotApplicable(reason=f"{one}; see python-input")
    consequences = list(_consequences(options, pipeline, breakdown, device, cores, limits))
    if not consequences:
        return Healthy(summary=f"{named}, but this does not make the step wait")
    values = {option: value for _, option, value, *_ in consequences}
    return Finding(
        summary="; ".join(said for said, *_ in consequences),
        evidence=tuple(item for *_, evidence in consequences for item in evidence),
        remedies=tuple(
            Remedy(f"Remove the option {name}", f"# remove: options.{name} = {value}", options.at)
            for name, value in values.items()
        ),
        effects=tuple(effect for *_, effects, _ in consequences for effect in effects),
        alike=len(values) - 1,
    )


def _consequences(
    options: DataOptions, pipeline: InputPipeline, breakdown: Breakdown, device: Device, cores: Cores | None,
    limits: Limits,
) -> Iterator[Consequence]:  # fmt: skip
    """Yield what a pool does that is always busy, a map that stays serial, and a prefetch that is not added."""
    stages = [stage for stage in pipeline.stages if stage.asynchronous and stage.work_ms]
    if pool := options.pool:
        threads = cores.usable if cores and device.kind == DeviceKind.CPU else pool + (cores.free if cores else inf)
        left = 1.0 / max(1.0, threads / pool)  # by as much as the stages' threads grow without the pool
        full = sum(stage.work_ms for stage in stages) / (pool * breakdown.step_ms)
        if stages and left < 1.0 and full >= limits.full:
            full = min(1.0, full)
            busy = Measure.share("share of time the pool is busy", full, limits.full)
            of_pool = f"A private pool of {counted(pool, 'thread')} is busy for {percent(full)} of the time"
            summary = f"{of_pool} and limits the pipeline"
            effects = tuple(stage.scaled(left, bound_by(cores), spreads=True) for stage in stages)
            evidence = Measure("threads of the private pool", count(pool)), busy
            yield summary, "threading.private_threadpool_size", pool, effects, evidence
    stage, off = pipeline.critical, options.no_parallel_map
    if off and stage and PLAIN.fullmatch(stage.kind):
        summary = f"{stage.title} limits the pipeline and runs on one thread because {off} is off"
        effect = stage.scaled(left_on_all_cores(device, cores), Bound.AT_MOST, spreads=True)
        yield summary, off, False, (effect,), (Measure("map time per step", ms(stage.work_ms)),)
    serial, off = pipeline.serial_ms, options.no_prefetch
    if off and not pipeline.prefetches and serial > limits.serial_ms:
        summary = f"Batches are produced while the step waits because {off} is off"
        effect = Effect(Stage.INPUT, of=ms(serial), overlaps=True)
        measure = Measure("input work while the step waits", ms(serial), ms(limits.serial_ms))
        yield summary, off, False, (effect,), (measure,)
