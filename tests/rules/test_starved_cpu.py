"""starved-cpu: the pipeline keeps all cores at work, and the step waits."""

from tests.rules.kit import *
from tfdoctor.rules.input import sequential_map, starved_cpu
from tfdoctor.rules.input.starved_cpu.cpu_pressure import CpuPressure

ON_GPU, ON_CPU = Device(DeviceKind.GPU, 1, 1), Device(DeviceKind.CPU, 1, 1)
FULL = Cores(4.0, busy=3.9)


def example(
    work: float = 28.0, *, breakdown: Breakdown | None = None, cores: Cores = Cores(2.0, 1.9),
    device: Device = ON_CPU, pressure: CpuPressure | None = None, decodes: DecodedImages | None = None, **more: Any,
) -> Verdict:  # fmt: skip
    """A decode takes 28 of the 30 ms of core time that two cores offer in a step of 15 ms."""
    stage = stage_time("Root::Prefetch::ParallelMapV2", work, cores.busy, **more)
    step = breakdown or Breakdown.of(input=11.0, device=4.0)
    facts = (InputPipeline.of(PREFETCH, stage), step, cores, device, pressure or CpuPressure())
    return starved_cpu.check(*facts, CpuContention.measure(device, cores, step), decodes)


def check(
    work: float = 76.0, *, wait: float = 15.0, host: float = 0.0, cores: Cores = FULL, **more: Any
) -> Verdict:
    """Steps of 20 ms, in which four cores offer 80 ms."""
    step = Breakdown.of(input=wait, host=host, device=20.0 - wait - host)
    return example(work, breakdown=step, cores=cores, **more)


sick = example
QUICK: dict[str, Any] = {"breakdown": Breakdown.of(input=0.1, device=4.0), "cores": Cores(2.0, 1.5)}
healthy = described("A smaller decode, for which the step does not wait.", example, 5.0, **QUICK)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["the stages need 80 % of what the cores offer, and less"] = check(64.1), check(63.9)
    told["threads that sleep in a stage use no core"] = [check(cores=Cores(4.0, busy=one)) for one in (3, 2.9)]
    told["a step waits 5 % of its time, and less: a GPU needs no cores"] = check(wait=1.0, device=ON_GPU)
    told[...] = check(wait=0.9, device=ON_GPU)
    told["a CPU computes on the cores that the input takes: 4 ms are slowed"] = check(wait=0.0, host=16.0)
    told["less than 4 ms of compute"] = check(wait=0.0, host=16.1)
    told["decoding is half of the work, and less"] = check(image_ms=38.0), check(image_ms=37.9)
    told["smaller images spare decoding"] = check(152.0, wait=0.0, cores=Cores(8.0, busy=7.8), image_ms=0.0)
    told[...] = check(152.0, wait=0.0, cores=Cores(8.0, busy=7.8), image_ms=77.0)
    told["cores that other programs use"] = check(cores=Cores(4.0, busy=3.2, others=0.8))
    told["cores that were not sampled"] = check(cores=Cores(4.0, busy=3.9, sampled=False))
    told["Python, of half the work, runs on one core, and more"] = [check(python_ms=ms) for ms in (38.0, 39.0)]
    told["a quota holds the run back for a twentieth of the time, less, or unknown"] = [
        check(pressure=CpuPressure(throttled=held, quota=4.0)) for held in (0.05, 0.04, None)
    ]
    told["a GPU can take the augmentation"] = check(device=ON_GPU)
    written = Dataset(id=1, kind="_ParallelMapDataset", function="decode", at=Location("t.py", 9))
    told["the line of the most expensive stage"] = check(dataset=written)
    slow = stage_time("Root::Prefetch::ParallelMapV2", 76.0)
    cases = ((200, 200), 0.5), ((199, 200), 0.5), ((200, 200), 0.49)
    told["images four times as large as used, in half of the work, are left to their own rule"] = [
        check(decodes=DecodedImages((DecodedImage(slow, "DecodeJpeg", decoded, (100, 100), share),)))
        for decoded, share in cases
    ]


@golden_cases
def test_crowded(told: Cases) -> None:
    compile(as_finding(check()).remedies[-1].code, "remedy", "exec")
    pipeline = InputPipeline.of(PREFETCH, stage_time("Root::Prefetch::Map", 20.0))
    step, cores = Breakdown.of(input=15.0, device=5.0), Cores(1.0, busy=1.0)
    parts: dict[str, Any] = {"exposed": step.median, "segments": pipeline.segments, "cores": cores}
    model = StepModel(device=DeviceKind.CPU, input_ms=20.0, **parts)
    contention = CpuContention.measure(ON_CPU, cores, step)
    threads = as_finding(sequential_map.check(pipeline, step, ON_CPU, cores, None))
    told["where no core is free, a sequential map saves nothing on more threads"] = model.saving(threads.effects)
    less = as_finding(starved_cpu.check(pipeline, step, cores, ON_CPU, None, contention, None))
    told["the compute gets the core, which as many threads of input shared with it"] = model.saving(less.effects)


# CpuPressure: what the kernel counted of a run that waited for processors.
SECOND = 1_000_000_000


def sample(at: float, **host: Any) -> dict[str, Any]:
    return {"unix_ns": round(at * SECOND), "host": host}


@golden_cases
def test_pressure(told: Cases) -> None:
    def measure(name: str, *rows: dict[str, Any], **more: Any) -> None:
        told[name] = lambda: CpuPressure.measure(recording(samples=rows, **more))

    grown = (sample(n, throttled_us=500_000 * n, psi_cpu_us=250_000 * n) for n in (1, 2, 3))
    measure("counters that grew for half of the time, and for a quarter", *grown)
    held = [0, 900_000, 900_000, 1_000_000, 5_000_000]
    window = TracedWindow(started_unix_ns=round(2.5 * SECOND), stopped_unix_ns=round(3.5 * SECOND))
    rows = (sample(n, throttled_us=us) for n, us in enumerate(held, start=1))
    measure("only what lies around the traced window counts", *rows, manifest=manifest(window=window))
    measure("a quota alone", sample(1, quota_cores=1.5), sample(2, quota_cores=1.5))
    measure("no sample")
    measure("a difference needs two samples", sample(1, throttled_us=3))
