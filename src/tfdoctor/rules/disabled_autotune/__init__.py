from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.input.data_options import DataOptions
from tfdoctor.facts.input.input_pipeline import NEGLIGIBLE_MS

__doc__, CODE = page(__file__)

TOPIC = Topic.INPUT
SINCE = "0.1.0"

PLAIN = re.compile(r"Map(?:V\d)?")
"""A map that runs on its consumer's thread."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When an option is reported as the cause of a wait."""

    full: float = share_limit(
        0.7,
        "Smallest share of time for which the threads of a private pool must be busy; below it, something "
        "else limits the pipeline",
    )
    serial_ms: float = limit(
        NEGLIGIBLE_MS,
        "Input work in ms per step, done while the step waits, up to which nothing is reported; handing over "
        "a batch that is ready takes about 0.1 ms",
    )


@dataclass(frozen=True, slots=True)
class Consequence:
    """What one option, set to ``value``, does to the pipeline."""

    summary: str
    option: str
    value: object
    effects: tuple[Effect, ...]
    evidence: tuple[Evidence, ...]


def check(
    options: DataOptions,
    pipeline: InputPipeline,
    breakdown: Breakdown,
    device: Device,
    cores: Cores | None,
    limits: Limits = Limits(),
) -> Verdict:
    """Look for the effect of the options on a pipeline that the step waits for."""
    settings = _settings(options)
    if options.by_keras or not settings:
        return Healthy(summary=KERAS_OPTIONS if options.by_keras else NO_OPTION)
    if not breakdown.waits_for_input:
        return Healthy(summary=f"{settings}, and {breakdown.little_wait}")
    critical = pipeline.critical
    if critical and critical.python_ms > critical.work_ms / 2:
        return NotApplicable(
            reason=f"{critical.title} runs Python, which uses one thread at a time with any options; see "
            "python-input"
        )
    consequences = [
        *_pool(options, pipeline, breakdown, _speedup(options, device, cores), limits),
        *_map(options, pipeline, device, cores),
        *_prefetch(options, pipeline, limits),
    ]
    if not consequences:
        return Healthy(summary=f"{settings}, but this does not make the step wait")
    return _finding(consequences, options)


KERAS_OPTIONS = "The script sets no options: Keras builds the pipeline from arrays"

NO_OPTION = "No dataset option disables automatic tuning or limits threads"


def _settings(options: DataOptions) -> str:
    """Return which of the options are judged, as the start of a sentence; "" when none is."""
    off = dict.fromkeys(filter(None, (options.no_parallel_map, options.no_prefetch)))
    settings = [f"switch off {option}" for option in off]
    settings += [f"set private_threadpool_size={options.pool}"] if options.pool else []
    return f"The dataset options {' and '.join(settings)}" if settings else ""


def _finding(consequences: list[Consequence], options: DataOptions) -> Finding:
    values = {consequence.option: consequence.value for consequence in consequences}
    return Finding(
        summary="; ".join(consequence.summary for consequence in consequences),
        evidence=tuple(item for consequence in consequences for item in consequence.evidence),
        remedies=tuple(
            Remedy(
                f"Remove the option {option}", f"# remove: options.{option} = {value}", options.at, "autotune-on"
            )
            for option, value in values.items()
        ),
        effects=tuple(effect for consequence in consequences for effect in consequence.effects),
        alike=len(values) - 1,
    )


def _speedup(options: DataOptions, device: Device, cores: Cores | None) -> tuple[float, Bound]:
    """Return by which factor the stages' threads grow without the pool; inf is unknown."""
    if cores is None or not options.pool:
        return float("inf"), Bound.AT_MOST
    threads = cores.usable if device.kind == DeviceKind.CPU else options.pool + cores.free
    bound = Bound.EXPECTED if cores.certain else Bound.AT_MOST
    return max(1.0, threads / options.pool), bound


def _pool(
    options: DataOptions,
    pipeline: InputPipeline,
    breakdown: Breakdown,
    speedup: tuple[float, Bound],
    limits: Limits,
) -> Iterator[Consequence]:
    """Yield the consequence of a pool whose threads are always busy."""
    times, bound = speedup
    stages = [stage for stage in pipeline.stages if stage.asynchronous and stage.work_ms]
    if not options.pool or times <= 1.0 or not stages:
        return
    full = sum(stage.work_ms for stage in stages) / (options.pool * breakdown.step_ms)
    if full < limits.full:
        return
    yield Consequence(
        f"A private pool of {counted(options.pool, 'thread')} is always busy and limits the pipeline",
        "threading.private_threadpool_size",
        options.pool,
        tuple(stage.scaled(1.0 / times, bound, spreads=True) for stage in stages),
        (
            Measure("threads of the private pool", count(options.pool)),
            Measure.share("share of time the pool is busy", min(1.0, full), limits.full),
        ),
    )


def _map(
    options: DataOptions, pipeline: InputPipeline, device: Device, cores: Cores | None
) -> Iterator[Consequence]:
    """Yield the consequence of a plain map that tf.data would have run in parallel."""
    stage = pipeline.critical
    if not options.no_parallel_map or stage is None or not PLAIN.fullmatch(stage.kind):
        return
    times = cores.for_stage(device.kind) if cores else float("inf")
    yield Consequence(
        f"{stage.title} limits the pipeline and runs on one thread because {options.no_parallel_map} is off",
        options.no_parallel_map,
        False,  # noqa: FBT003 - the option's value
        (stage.scaled(1.0 / times, Bound.AT_MOST, spreads=True),),
        (Measure("map time per step", ms(stage.work_ms)),),
    )


def _prefetch(options: DataOptions, pipeline: InputPipeline, limits: Limits) -> Iterator[Consequence]:
    """Yield the consequence of a prefetch that tf.data did not add."""
    serial = pipeline.serial_ms
    if not options.no_prefetch or pipeline.prefetches or serial <= limits.serial_ms:
        return
    yield Consequence(
        f"Batches are produced while the step waits because {options.no_prefetch} is off",
        options.no_prefetch,
        False,  # noqa: FBT003 - the option's value
        (Effect(Stage.INPUT, of=ms(serial), overlaps=True),),
        (Measure("input work while the step waits", ms(serial), ms(limits.serial_ms)),),
    )
