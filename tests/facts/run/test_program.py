"""How many batches one pass over recorded datasets has, and how recorded lines are shown."""

from copy import deepcopy

from scripts.mutation.cases import write_intact
from scripts.mutation.originals import ON_CPU, originals
from tests.facts.kit import *
from tfdoctor.diagnose.diagnose import chart_of
from tfdoctor.diagnose.engine import examine
from tfdoctor.facts.run.operation_types import CALLS, OPAQUE, RANDOM, READS, SHAPES, UPDATES
from tfdoctor.facts.run.program import FOREVER, batches_of, line_of
from tfdoctor.facts.run.xla_operations import operation
from tfdoctor.rules import all_rules
from tfdoctor.trace.hlo import Shape


def chain(*stages: tuple[str, int | None]) -> tuple[Dataset, ...]:
    """A line of datasets, consumers first, each with its kind and cardinality."""
    batch = DatasetParameters(batch_size=10)
    return tuple(
        Dataset(
            id=at, kind=f"_{kind}Dataset", inputs=(at + 1,) * (at < len(stages) - 1), cardinality=number,
            parameters=batch if kind == "Batch" else DatasetParameters(),
        )
        for at, (kind, number) in enumerate(stages)
    )  # fmt: skip


test_the_batches_of_one_pass = answers(
    lambda *stages: batches_of(chain(*stages)),
    (("Prefetch", 20), ("Batch", 20), ("TensorSlice", 195), 20),  # the feeding dataset's own
    # a repeated pass is that of what is repeated
    (("Batch", FOREVER), ("Repeat", FOREVER), ("Shuffle", 200), ("TensorSlice", 200), 20),
    (("Batch", None), ("FlatMap", None), ("TensorSlice", 3), None),  # a stage expands its elements
    (None,),
)


def test_a_line_ends_where_several_sources_meet() -> None:
    zipped = Dataset(id=0, kind="ZipDataset", inputs=(1, 2))
    sources = (Dataset(id=1, kind="RangeDataset"), Dataset(id=2, kind="RangeDataset"))
    assert line_of((zipped, *sources)) == (zipped,)
    assert line_of((zipped, *sources), sources[1]) == (sources[1],)


@cases(
    ("/data/run/models/net.py", "python train.py", "/data/run", "models/net.py"),
    ("/code/job/train.py", "python /code/job/train.py", "/data/run", "train.py"),  # a script elsewhere
    ("/data/job/models/net.py", "python ../job/train.py", "/data/run", "models/net.py"),
    ("/data/run/net.py", "python /data/train.py", "/data/run", "net.py"),  # below both
    ("/data/runs/net.py", "python train.py", "/data/run", "/data/runs/net.py"),
    ("/code/net.py", "python -m job", "/data/run", "/code/net.py"),
    ("/code/net.py", "", "", "/code/net.py"),
    ("/net.py", "python train.py", "/", "net.py"),
)
def test_files_are_shown_relative_to_the_run_or_its_script(path: str, command: str, cwd: str, shown: str) -> None:
    places = Places(Manifest(command=tuple(command.split()), cwd=cwd).folders)
    assert places.shown(path) == shown
    assert places((path, 3)) == Location(shown, 3)


# XLA's instructions as operations, by real traces of a GPU.


def by_name(trace: str) -> dict[str, Operation]:
    operations = h100(trace).fact(XlaOperations).operations.items()
    return {name: found for (_, name), found in operations}


told = Told()


@told
def instructions_of_real_programs_as_operations() -> object:
    """Calls of cuDNN have the sizes of the convolution, matmuls of cuBLASLt and of Triton theirs, and a fusion."""
    given = {
        "convnet-bfloat16-130": ("cudnn-conv.7", "cudnn-conv-bw-input.9", "cudnn-conv-bw-filter.7"),
        "mlp-bfloat16-4000": ("custom-call.1", "loop_subtract_fusion.7"),
        "mlp-bfloat16-4001": ("gemm_fusion_dot_general.24",),
    }
    return {
        f"{one} of {trace}": fields(by_name(trace)[one], "name type inputs outputs at")
        for trace, names in given.items()
        for one in names
    }


@told
def a_fusion_that_gathers_moves_an_unknown_number_of_bytes() -> object:
    table, row = (Shape("f32", (1000, 8)),), (Shape("f32", (4, 8)),)
    inner = Instruction("gather.1", "gather", row, ("p",), ())
    fusion = Instruction("fusion.1", "fusion", row, ("p",), (2,), "f/take")
    program = HloProgram("f", 1, {1: (fusion,), 2: (inner,)}, donates=False)
    return operation(program, fusion, {"p": table})


@told
def a_depthwise_convolution_is_no_matmul() -> object:
    sizes = HloMatmul(1, 64, 32, 1, 9, 32, "f32", Pass.FORWARD)
    call = Instruction("c", "custom-call", (Shape("f32", (64, 32)),), (), (), "f/conv", sizes)
    return operation(HloProgram("f", 1, {1: (call,)}, donates=False), call, {})


test_program = told.test("program")


# What each type of operation does: the forms of which earlier lists missed some.


def done(kind: str) -> object:
    """What is known of a type: Python is opaque and no graph, and of shapes no values are taken."""
    patterns = {"updates": UPDATES.fullmatch, "reads": READS.search, "draws": RANDOM.search}
    patterns |= {"calls": CALLS.search, "opaque": OPAQUE.search}
    return [*(name for name, found in patterns.items() if found(kind)), *(["a shape"] if kind in SHAPES else [])]


test_what_each_type_of_operation_does = Names(__file__, "types").test(done)

test_an_optimizers_whole_step_is_told_in_graphs_of_sessions_too = answers(
    lambda kind: bool(OptimizerWork.measure(Operations((OperationTime(name="update", type=kind, ms=1.0),))).rows),
    *((kind, True) for kind in ("ApplyMomentum", "ResourceApplyAdam", "SparseApplyFtrl")),
    ("AssignSubVariableOp", False),
)

# Pipelines that take what they make, and long or doubled ones, end in time without a failed fact or rule.

LONG = 3000


def stages(first: dict[str, Any], number: int, times: int, kind: str) -> list[dict[str, Any]]:
    """Return so many stages, each of which takes the next one so many times."""
    taken = [[at + 1] * times * (at < number - 1) for at in range(number)]
    return [{**first, "id": at, "class": kind, "inputs": inputs} for at, inputs in enumerate(taken)]


def breaks_nothing(change: Callable[[dict[str, Any]], None], folder: Path) -> None:
    original = next(one for one in originals() if one.name == ON_CPU)
    program = deepcopy(original.program)
    change(program)
    write_intact(folder, replace(original, program=program))
    chart = chart_of(Recording.open(folder))
    results = examine(chart, tuple(all_rules()))
    assert [one.outcome.traceback for one in results if isinstance(one.outcome, Errored)] == []
    assert not chart.defects


@each(
    lambda found: [{**one, "inputs": [one["id"]]} for one in found],
    lambda found: [{**one, "inputs": [found[at - 1]["id"]]} for at, one in enumerate(found)],
    lambda found: [{**one, "inputs": [other["id"] for other in found]} for one in found],
    lambda found: stages(found[0], LONG, 1, "RepeatDataset"),
    lambda found: stages(found[0], 60, 2, "RepeatDataset"),
    lambda found: stages(found[0], 60, 2, "ZipDataset"),
    ids=["itself", "circle", "all", "long", "doubled", "doubled-zip"],
)
def test_a_pipeline_of_any_shape_breaks_nothing(changed: Any, tmp_path: Path) -> None:
    breaks_nothing(lambda program: program.update(datasets=changed(program["datasets"])), tmp_path)


@each("Identity", "AddV2", "Cast")
def test_a_graph_in_circles_breaks_nothing(kind: str, tmp_path: Path) -> None:
    def circle(program: dict[str, Any]) -> None:
        for graph in program["graphs"]:
            number = len(graph["operations"])
            for at, one in enumerate(graph["operations"]):
                one |= {"from": [(at + 1) % number, (at + 2) % number], "type": kind}

    breaks_nothing(circle, tmp_path)
