"""What the facts say of a synthetic run on a TPU is what is known of it, within 2 %."""

from scripts.synthetic import samples, tpu
from scripts.synthetic.network import Network
from scripts.synthetic.operation import Op
from scripts.synthetic.run import Chip, duration
from scripts.synthetic.run import Run as Synthetic
from scripts.synthetic.tpu import Recorded, Schedule
from scripts.synthetic.xspace import MS, Space
from tests.facts.kit import *
from tfdoctor.facts.tpu.shapes import arrays
from tfdoctor.facts.tpu.time import COMPUTE, COPIES, IDLE, INFEED, OUTFEED

WAITS = Network(width=160, depthwise=True)
PROGRAM, UNMARKED = Recorded(program=True), Recorded(step_line=False, markers=False)
HALF = partial(Synthetic, precision="bf16")

RUNS = {
    "v3": (Synthetic(device="v3", input_ms=2.0, network=Network(depthwise=True)), Recorded()),
    "v3 without a step line": (Synthetic(device="v3", gap_us=4.0), Recorded(step_line=False)),
    "v5e padded": (HALF(device="v5e", network=Network(width=144)), PROGRAM),
    "v5e as JAX records it": (HALF(device="v5e", network=WAITS, between_ms=0.3), replace(UNMARKED, program=True)),
    "v5e without infeed": (Synthetic(device="v5e", input_ms=1.0), replace(PROGRAM, infeed=False)),
    "v6e": (HALF(device="v6e", network=Network(width=300), gap_us=5.0), PROGRAM),
    "v6e, its clock drifting": (Synthetic(device="v6e", steps=40), replace(UNMARKED, drift=0.002)),
    "v6e with a copy": (HALF(device="v6e"), Recorded(step_line=False, copy_ms=0.9, hidden_by=3)),
    "v5e, its host late": (Synthetic(device="v5e", between_ms=0.5), replace(UNMARKED, late_us=400.0)),
}


@dataclass(frozen=True)
class Case:
    run: Synthetic
    recorded: Recorded
    plan: Schedule
    chip: Chip
    chart: Chart

    @property
    def ops(self) -> tuple[Op, ...]:
        return self.run.network.training_step()

    def ms(self, op: Op) -> float:
        return duration(op, self.chip) / MS


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Case]:
    def case(run: Synthetic, recorded: Recorded) -> Case:
        chart = opened(tpu.build(run, recorded), tmp_path_factory.mktemp("run"))
        return Case(run, recorded, tpu.schedule(run, recorded), tpu.chip(run), chart)

    return {name: case(*given) for name, given in RUNS.items()}


@pytest.fixture(params=RUNS)
def one(request: pytest.FixtureRequest, made: dict[str, Case]) -> Case:
    return made[request.param]


def opened(space: Space, folder: Path) -> Chart:
    path = folder / samples.TRACE
    path.parent.mkdir(parents=True)
    path.write_bytes(space.serialized())
    recording = Recording.open(folder)
    return Chart([xplane.read(recording.traces[0]), recording])


def close(expected: float) -> object:
    return pytest.approx(expected, rel=0.02, abs=2e-5)


def test_steps(one: Case) -> None:
    steps, marked = one.chart.fact(Steps), one.recorded.markers
    assert (steps.count, steps.median_ms) == (one.run.steps, close(one.plan.end / MS))
    known = ("markers", "") if marked else ("module-runs", "cluster_train_step")
    assert (steps.source, steps.program) == known


def test_the_parts_of_a_step(one: Case) -> None:
    time = one.chart.fact(TpuTime)
    assert time.unit == "step"
    compute, outfeed = sum(map(one.ms, one.ops)), tpu.OUTFEED / MS
    infeed = one.plan.infeed / MS if one.recorded.infeed else 0.0
    copies = (one.plan.copy[2] - one.plan.copy[1]) / MS
    for core in time.cores:
        assert core.rounds == one.run.steps
        known = {COMPUTE: compute, INFEED: infeed, OUTFEED: outfeed, COPIES: copies}
        assert {part: core.parts[part] for part in known} == {part: close(ms) for part, ms in known.items()}
        assert sum(core.parts.values()) == close(core.round_ms)
        assert core.parts[IDLE] == pytest.approx(core.round_ms - core.busy_ms)
    if one.recorded.step_line:
        whole = one.plan.end / MS
        assert time.cores[0].round_ms == close(whole)
        assert time.cores[0].parts[IDLE] == close(whole - compute - outfeed - infeed)


def test_a_copy_from_the_host(made: dict[str, Case]) -> None:
    one = made["v6e with a copy"]
    core = one.chart.fact(TpuTime).busiest
    (copy,) = core.copies
    assert (copy.where, copy.nbytes, copy.calls) == ("host", tpu.COPIED, 1.0)
    hidden = sum(map(one.ms, one.ops[-4:-1]))
    assert 0 < hidden < one.recorded.copy_ms
    assert copy.exposed_ms == close(one.recorded.copy_ms - hidden)
    assert core.hidden_ms == close(hidden)
    assert core.host_bytes == tpu.COPIED


def test_a_host_that_launches_late_and_one_that_launches_ahead(made: dict[str, Case]) -> None:
    one = made["v5e, its host late"]
    launches, gaps = one.chart.fact(TpuLaunches), one.run.steps - 1
    assert launches.runs == one.run.steps
    assert launches.between_ms == close(one.run.between_ms * gaps)
    assert launches.late_ms == close(one.recorded.late_us / 1000 * gaps)
    assert made["v5e as JAX records it"].chart.fact(TpuLaunches).late_ms is not None


def test_a_program_that_does_not_train_has_runs_and_no_steps(tmp_path: Path) -> None:
    space = tpu.build(replace(RUNS["v3"][0], steps=6), UNMARKED)
    for plane in space.proto.planes:
        for stat in plane.stat_metadata.values():
            stat.name = stat.name.replace("gradient_tape/", "")
    chart = opened(space, tmp_path)
    time = chart.fact(TpuTime)
    assert (time.unit, time.program, time.busiest.rounds) == ("run", "cluster_train_step", 6)
    with pytest.raises(Unavailable, match="step"):
        chart.fact(Steps)


# Arrays in HLO text, and how they lie in a TPU's memory.

COPY = (
    "%copy-start.1 = (f32[5,1024,256]{2,1,0:T(8,128)S(5)}, f32[5,1024,256]{2,1,0:T(8,128)}, u32[]{:S(2)}) "
    "copy-start(f32[5,1024,256]{2,1,0:T(8,128)} %add.2)"
)


def test_results_come_before_operands_with_their_memory() -> None:
    found = arrays(COPY)
    assert [(one.dtype, one.space) for one in found] == [("f32", 5), ("f32", 0), ("u32", 2), ("f32", 0)]
    assert (found[0].dims, found[0].tile, found[0].nbytes) == ((5, 1024, 256), (8, 128), 5 * 1024 * 256 * 4)
    assert arrays("%while.1 = () while(%tuple)") == arrays("") == ()


def stored(text: str) -> object:
    (array,) = arrays(text)
    return fields(array, "width nbytes")


# The other dimension may be in the lanes.
test_widths_and_bytes_of_arrays = Names(__file__, "arrays").test(stored)
