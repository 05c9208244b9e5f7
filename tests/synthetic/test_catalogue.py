"""Rules whose fault no CPU has: each on two synthetic runs, of which only one has the fault.

The runs differ in the fault alone. Said is what is declared, on both, by any rule at all; and what the
finding promises is what the runs differ by. A ceiling may be passed by half a point of the step, below which
nothing is worth saying; an expected saving is within five points of the true one.
"""

from scripts.synthetic import gpu, samples
from scripts.synthetic.exchange import all_reduce_ms
from scripts.synthetic.network import Network
from scripts.synthetic.record import record
from scripts.synthetic.run import Run, Truth
from tests import agreement
from tests.builders import manifest
from tests.kit import *
from tfdoctor.diagnose.diagnose import chart_of, diagnosed
from tfdoctor.diagnose.savings import WORTH_SAYING
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.results import Result
from tfdoctor.facts.chart import Chart
from tfdoctor.recording import MANIFEST, PROGRAM, SAMPLES, Recording
from tfdoctor.rules import all_rules
from tfdoctor.terms.verdict import Bound, Finding, Healthy, NotApplicable

EXPECTED = 0.05
"""Of the step: how far an expected saving may be from the true one."""

UNIT = "idle-matrix-unit"
LOW = 0.3
"""Of the unit's peak: below it the rule of that name speaks, and rightly."""


@dataclass(frozen=True)
class Pair:
    """A run with a fault and its twin.

    ``also`` and ``left`` are other rules with true findings, in the sick and in the healthy run: the
    pipelines' map is sequential; Python takes 2 ms between steps; a step of 0.3 ms is read after each time;
    gelu of single operations is not all that XLA could fuse; four T4s exchange gradients over PCIe.
    """

    rule: str
    sick: Run
    healthy: Run
    also: frozenset[str] = frozenset()
    left: frozenset[str] = frozenset()
    short: str = ""  # why less is promised than the runs differ by


def pair(rule: str, sick: Run, healthy: Run, **more: Any) -> Pair:
    also, left = (frozenset(more.pop(key, "").split()) for key in ("also", "left"))
    return Pair(rule, sick, healthy, also, left, **more)


def on(device: str, precision: str = "bf16", **more: Any) -> Run:
    """A run that copies its batches while it computes, and whose pipeline is fast."""
    run = {key: more.pop(key) for key in RUN if key in more}
    network = Network(**({"batch": 128} | more))
    steady = {"overlap": True, "work_ms": 0.1, "steps": 8}
    return Run(device=device, precision=precision, network=network, **(steady | run))


RUN = frozenset(Run.__dataclass_fields__)


def exchanging(run: Run, hidden: float = 0.0) -> Run:
    """Let the replicas sum their gradients, so much of it beside the backward pass."""
    exchange = all_reduce_ms(run)
    return replace(run, all_reduce_ms=exchange, hidden_ms=hidden * exchange)


SEPARABLE: dict[str, Any] = {"width": 32, "depthwise": True, "pointwise": True}

LAUNCHES = "the step model keeps all launches of a host that is not ahead, and fewer kernels need fewer"
FIXED = "only the host and the exchange are counted, not the launches beside kernels nor what those cost alike"

PAIRS = {
    # Precision
    "float32 V100": pair("float32-matmul", on("v100", "fp32"), on("v100", "fp16")),
    "float32 T4": pair("float32-matmul", on("t4", "fp32"), on("t4", "fp16")),
    "float32 A100": pair("float32-matmul", on("a100", "tf32"), on("a100")),
    "float32 H100": pair("float32-matmul", on("h100", "tf32", batch=512), on("h100", batch=512)),
    "float32 v3": pair("float32-matmul", on("v3", "fp32"), on("v3")),
    "no TF32 A100": pair("float32-matmul", on("a100", "fp32"), on("a100")),
    "float16 GTX 1660": pair("float16-without-tensor-cores", on("gtx1660", "fp16", batch=32),
        on("gtx1660", "fp32", batch=32)),
    "unit V100": pair(UNIT, on("v100", "fp32"), on("v100", "fp16"), also="float32-matmul"),
    "unit v5e": pair(UNIT, on("v5e", width=64, batch_norm="none"), on("v5e", width=256, batch_norm="none"),
        also="unaligned-dimension"),
    "unaligned A100": pair("unaligned-dimension", on("a100", width=33, batch=1024),
        on("a100", width=32, batch=1024)),
    "unaligned v5e": pair("unaligned-dimension", on("v5e", width=144), on("v5e", width=128)),
    "unaligned v6e": pair("unaligned-dimension", on("v6e", width=288), on("v6e", width=256)),
    # Operations
    "batch norm V100": pair("unfused-batch-norm", on("v100", "fp16", batch_norm="unfused"), on("v100", "fp16")),
    "batch norm A100": pair("unfused-batch-norm", on("a100", batch_norm="unfused"), on("a100")),
    "depthwise T4": pair("depthwise-convolution", on("t4", "fp16", batch=256, **SEPARABLE),
        on("t4", "fp16", batch=256, width=32)),
    "depthwise v5e": pair("depthwise-convolution", on("v5e", **SEPARABLE), on("v5e", width=32),
        left="unaligned-dimension"),
    "groups V100": pair("grouped-convolution", on("v100", "fp16", groups=8, slow_groups=True),
        on("v100", "fp16", groups=8)),
    "elementwise A100": pair("unfused-elementwise", on("a100", activation="gelu"),
        on("a100", activation="compiled")),
    "pooling V100": pair("max-pool-gradient", on("v100", "fp16", pooling="max"),
        on("v100", "fp16", pooling="average")),
    "pooling v3": pair("max-pool-gradient", on("v3", pooling="max"), on("v3", pooling="average")),
    "optimizer A100": pair("optimizer-overhead", on("a100", batch=512, small_variables=60), on("a100", batch=512)),
    "optimizer A100, launched late": pair("optimizer-overhead", on("a100", small_variables=60), on("a100"),
        short=LAUNCHES),
    "broadcast A100": pair("broadcast-cost", on("a100", scale="tiled"), on("a100", scale="broadcast"),
        also="unfused-elementwise", left="unfused-elementwise"),
    "layout T4": pair("layout-change", on("t4", "fp16", layout="turned"), on("t4", "fp16", layout="first")),
    "layout v5e": pair("layout-change", on("v5e", layout="turned"), on("v5e", layout="first")),
    "layout V100, within": pair("layout-change", on("v100", "fp16", converts=True), on("v100", "fp16")),
    # Execution
    "launching A100": pair("kernel-launch-bound", on("a100", batch=1, dispatch_us=40.0),
        on("a100", batch=1, dispatch_us=2.0), also="small-batch host-sync", left="host-sync"),
    "reading A100": pair("host-sync", on("a100", batch=1024, between_ms=2.0),
        on("a100", batch=1024, between_ms=2.0, ahead=True), also="between-steps"),
    "placed V100": pair("device-placement", on("v100", "fp16", detour_ms=3.0), on("v100", "fp16")),
    "copying V100": pair("serial-transfer", on("v100", "fp16", overlap=False, copy="pageable"),
        on("v100", "fp16", copy="pageable")),
    "recurrent V100": pair("slow-cudnn-path", on("v100", "fp16", batch=64, recurrent="loop"),
        on("v100", "fp16", batch=64, recurrent="cudnn"), also="unfused-elementwise", short=LAUNCHES),
    "deterministic V100": pair("deterministic-operations", on("v100", "fp16", deterministic=True),
        on("v100", "fp16")),
    "shapes V100": pair("new-shapes", on("v100", "fp16", searches=True), on("v100", "fp16")),
    "compiling A100": pair("recompilation", on("a100", compile_ms=40.0), on("a100")),
    # Input
    "waiting A100": pair("input-bound", on("a100", input_ms=3.0, work_ms=0.0), on("a100"), also="sequential-map"),
    "prefetch A100": pair("missing-prefetch", on("a100", input_ms=3.0, prefetch=False), on("a100", work_ms=3.0),
        also="input-bound sequential-map"),
    # Scale
    "idle H100": pair("idle-device", on("h100", batch=1024, idle_gpus=1),
        exchanging(on("h100", batch=512, replicas=2))),
    "idle V100s": pair("idle-device", on("v100", "fp16", batch=512, idle_gpus=3),
        exchanging(on("v100", "fp16", replicas=4))),
    "exchange T4": pair("collective-bound", exchanging(on("t4", "fp16", batch=16, width=256, replicas=4)),
        exchanging(on("t4", "fp16", batch=16, width=256, replicas=4), hidden=0.9)),
    "replicas T4": pair("small-replica-batch",
        exchanging(on("t4", "fp16", batch=2, size=32, width=256, replicas=4)),
        exchanging(on("t4", "fp16", batch=32, size=32, width=256, replicas=4)), also="collective-bound host-sync",
        left="collective-bound", short=FIXED),
    "hot V100": pair("throttled-device", on("v100", "fp16", clock=0.6), on("v100", "fp16")),
    "full V100": pair("memory-headroom", on("v100", "fp16", memory=0.98), on("v100", "fp16", memory=0.5)),
}  # fmt: skip


@dataclass(frozen=True)
class Seen:
    """What is known of a run, and what is said of it."""

    run: Run
    truth: Truth
    chart: Chart
    diagnosis: Diagnosis

    @property
    def results(self) -> Mapping[str, Result]:
        """What every rule says."""
        return {result.rule.name: result for result in self.diagnosis.results}

    @property
    def found(self) -> set[str]:
        """The rules that find a fault; general ones find what no other explains, with or without a fault."""
        return {
            name
            for name, result in self.results.items()
            if isinstance(result.outcome, Finding) and not result.rule.general
        }

    @property
    def examples(self) -> int:
        """Of a step, on all replicas."""
        return self.run.network.batch * self.run.replicas


@cache
def seen(run: Run) -> Seen:
    with TemporaryDirectory() as folder:
        truth = samples.write(run, Path(folder))
        _beside(run, Path(folder))
        chart = chart_of(Recording.open(folder))
        return Seen(run, truth, chart, diagnosed(chart, all_rules(), run.device))


def _beside(run: Run, folder: Path) -> None:
    """Write what tfdoctor records beside a trace."""
    (folder / MANIFEST).write_text(json.dumps(asdict(manifest())))
    (folder / PROGRAM).write_bytes(gzip.compress(json.dumps(record(run)).encode()))
    if run.device in gpu.GPUS:
        rows = [json.dumps({"unix_ns": n * 10**9, "gpu": [_sample(run)]}) for n in range(1, 11)]
        (folder / SAMPLES).write_text("\n".join(rows))


def _sample(run: Run) -> dict[str, Any]:
    """What NVML tells each second: a clock that is not at its highest is held by heat."""
    chip = gpu.GPUS[run.device]
    held = ["software-thermal"] if run.clock < 1 else []
    clock = round(chip.clock_khz * run.clock / 1000)
    return {"index": 0, "name": chip.name, "gpu_pct": 99, "sm_mhz": clock, "throttle": held}


@each(*PAIRS)
def test_the_fault_is_found_where_it_is_and_nothing_else_is_said_than_what_is_true_too(name: str) -> None:
    case = PAIRS[name]
    sick, healthy = seen(case.sick), seen(case.healthy)
    assert isinstance(sick.results[case.rule].outcome, Finding)
    assert isinstance(healthy.results[case.rule].outcome, Healthy | NotApplicable)
    assert sick.found - {UNIT, case.rule} == case.also - {UNIT}
    assert healthy.found - {UNIT} == case.left
    assert not list(agreement.other_steps(sick.diagnosis))
    for one in (sick, healthy):
        assert {type(result.outcome) for result in one.results.values()} <= {Finding, Healthy, NotApplicable}
        assert not list(agreement.disagreements(one.chart))
        assert not list(agreement.unaccounted(one.chart, one.diagnosis.results))


WITH_UNIT = [name for name, case in PAIRS.items() if case.sick.device != "gtx1660"]


@each(*WITH_UNIT)
def test_the_matrix_unit_is_called_idle_below_its_limit(name: str) -> None:
    """By the FLOPs of the whole step, over the peak in 16-bit precision, whatever precision the run has."""
    for run in (PAIRS[name].sick, PAIRS[name].healthy):
        report = seen(run)
        chip = samples.chip(replace(run, precision=_narrow(run), clock=1.0))
        use = report.truth.flops / (report.truth.compute_ms * 1e-3) / chip.peak_flop_s
        assert (UNIT in report.found) == (use < LOW)


def _narrow(run: Run) -> str:
    return "fp16" if run.device in ("v100", "t4") else "bf16"


PROMISES = [name for name, case in PAIRS.items() if case.rule not in (UNIT, "memory-headroom")]


@each(*PROMISES)
def test_what_is_promised_is_what_the_runs_differ_by(name: str, request: pytest.FixtureRequest) -> None:
    case = PAIRS[name]
    if case.short:
        request.applymarker(pytest.mark.xfail(reason=case.short, strict=True))
    promised, true = seen(case.sick).results[case.rule].saving, saved(case)
    assert promised is not None
    if promised.bound is Bound.AT_MOST:
        assert true <= promised.share + WORTH_SAYING
    else:
        assert promised.share == pytest.approx(true, abs=EXPECTED)


def saved(case: Pair) -> float:
    """Return what the healthy run saves of the sick one's step, for as many examples."""
    sick, healthy = seen(case.sick), seen(case.healthy)
    same = healthy.truth.step_ms * sick.examples / healthy.examples
    return 1 - same / sick.truth.step_ms


def test_what_falls_short_is_never_too_much() -> None:
    """Of the pairs whose saving is known to be told too low."""
    for case in PAIRS.values():
        saving = seen(case.sick).results[case.rule].saving
        if case.short:
            assert saving is not None
            assert 0 < saving.share < saved(case)
