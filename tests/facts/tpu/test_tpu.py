"""What the facts say of a synthetic run on a TPU is what is known of it, within 2 %."""

from scripts.synthetic import samples, tpu
from scripts.synthetic.network import Network
from scripts.synthetic.operation import Kind, Op
from scripts.synthetic.run import Chip, duration, padded, traffic
from scripts.synthetic.run import Run as Synthetic
from scripts.synthetic.tpu import Recorded, Schedule
from scripts.synthetic.tpu_program import BY_WEIGHTS, depth, direction, factors
from scripts.synthetic.xspace import MS, Space
from tests.facts.kit import *
from tfdoctor.diagnose.summary.devices import tpu_time
from tfdoctor.facts.tpu.shapes import arrays, convolves_each_alone
from tfdoctor.facts.tpu.time import COMPUTE, COPIES, IDLE, INFEED, OUTFEED
from tfdoctor.trace.hlo import Shape

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


def test_mxu_use(one: Case) -> None:
    operations = one.chart.fact(TpuOperations)
    rows = {row.title.partition(":")[0]: row for row in operations.rows}
    for op in one.ops:
        assert rows[op.name].ms == close(one.ms(op))
    # XLA calls a depthwise convolution a convolution too, and the MXU runs it.
    products = [op for op in one.ops if op.kind in tpu.CATEGORY]
    whole = sum(op.flops for op in products) / (operations.compute_ms * 1e-3)
    assert operations.mxu_use == close(whole / one.chip.peak_flop_s)


def test_what_the_memory_bounds(one: Case) -> None:
    operations = one.chart.fact(TpuOperations)
    ridge = one.chip.peak_flop_s / one.chip.bandwidth_bytes_s
    bound = [op for op in one.ops if op.kind not in tpu.CATEGORY or op.flops / traffic(op, one.chip) < ridge]
    assert operations.ridge == close(ridge)
    assert operations.memory_bound_ms == close(sum(map(one.ms, bound)))
    float32 = sum(one.ms(op) for op in one.ops if op.kind in tpu.CATEGORY)
    assert operations.float32_ms == close(float32 if one.run.precision == "fp32" else 0.0)


def test_padding(one: Case) -> None:
    found, known = one.chart.fact(Padding), one.recorded.program
    side = 256 if one.run.device == "v6e" else 128
    ops = {op.name: op for op in one.ops if op.is_matrix}
    assert (found.side, len(found.matmuls), found.tiles) == (side, len(ops), ((8, 128),))
    lost = 0.0
    for product in found.matmuls:
        op = ops[product.row.title.partition(":")[0]]
        width = op.result[-1]
        lost += one.ms(op) * (1 - width / padded(width, side))
        assert product.useful == close(width / padded(width, side))
        deep = depth(op) / padded(depth(op), side) if known and not has_window(op) else None
        assert product.depth_useful == (None if deep is None else close(deep))
        assert product.stored_useful == close(stored_share(op))
    truth = tpu.truth(one.run)
    assert found.lost_ms == close(lost)
    assert found.lost_ms == close(truth.padding_ms)
    assert found.useful == close(1 - truth.padding_ms / truth.matrix_ms)
    products = [(one.ms(op), op) for op in ops.values()]
    stored = sum(ms * stored_share(op) for ms, op in products) / sum(ms for ms, _ in products)
    assert found.stored_useful == close(stored)
    plain = [(ms, depth(op)) for ms, op in products if not has_window(op)]
    used = sum(ms * size / padded(size, side) for ms, size in plain) / sum(ms for ms, _ in plain)
    assert found.depth_useful == (close(used) if known else None)


def test_the_report_tells_of_all_three_paddings(made: dict[str, Case]) -> None:
    chart = made["v5e padded"].chart
    shown = {measure.label: measure.value.value for measure in tpu_time(chart)}
    padding, of = chart.fact(Padding), "useful share of the matmul"
    assert shown[f"{of} width (the rest pads to 128)"] == padding.useful
    assert shown[f"{of} depth (the rest pads to 128; without convolutions)"] == padding.depth_useful
    assert shown[f"{of} arrays in memory (the rest pads to tiles: 8 x 128)"] == padding.stored_useful


def has_window(op: Op) -> bool:
    """Whether the convolution's kernel in HLO, which is the result's gradient for the weights, has a window."""
    if op.kind is not Kind.CONVOLUTION:
        return False
    height, width = factors(op)[1][:2] if direction(op) != BY_WEIGHTS else factors(op)[1][1:3]
    return height * width > 1


def stored_share(op: Op) -> float:
    """Elements over those stored in tiles of 8 x 128."""
    shapes = [op.result, *op.operands]
    tiled = [(*shape[:-2], *map(padded, shape[-2:], (8, 128)[-len(shape[-2:]) :])) for shape in shapes]
    return sum(map(prod, shapes)) / sum(map(prod, tiled))


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


def test_flops_that_are_not_known_make_no_mxu_use(tmp_path: Path) -> None:
    space = tpu.build(RUNS["v3"][0])
    for plane in space.proto.planes:
        names = {key: stat.name for key, stat in plane.stat_metadata.items()}
        for metadata in plane.event_metadata.values():
            kept = [stat for stat in metadata.stats if names[stat.metadata_id] != "flops"]
            del metadata.stats[:]
            metadata.stats.extend(kept)
    assert opened(space, tmp_path).fact(TpuOperations).mxu_use is None


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
    return fields(array, "width stored useful nbytes")


# The other dimension may be in the lanes; without a tile nothing is known to be padded.
test_widths_and_bytes_of_arrays = Names(__file__, "arrays").test(stored)


@given(st.lists(st.integers(1, 300), min_size=1, max_size=4))
def test_no_array_is_stored_in_less_than_it_holds(dims: list[int]) -> None:
    order = tuple(reversed(range(len(dims))))
    array = Array.of(Shape("f32", tuple(dims), order, ((8, 128),)))
    assert array.stored >= prod(dims)
    assert array.stored % 128 == 0
    assert 0 < array.useful <= 1


CONVOLUTION = (
    "%convolution.1 = bf16[8,32,32,{}]{{3,2,1,0}} convolution(bf16[8,32,32,144]{{3,2,1,0}} %p.0, "
    "bf16[3,3,1,144]{{3,2,1,0}} %p.1), window={{size=3x3}}, dim_labels=b01f_01io->b01f{}"
)

test_a_depthwise_convolution_has_a_group_per_feature = answers(
    lambda features, groups: convolves_each_alone(CONVOLUTION.format(features, groups)),
    (144, ", feature_group_count=144", True),
    (144, ", batch_group_count=144", True),
    (144, ", feature_group_count=12", False),  # grouped, twelve channels each
    (144, "", False),
    (1, ", feature_group_count=1", False),
)


def test_a_fusions_text_does_not_tell_of_groups() -> None:
    assert not convolves_each_alone("%fusion.1 = f32[8,144]{1,0} fusion(f32[8,8]{1,0} %p.0)")
