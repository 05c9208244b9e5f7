"""What is recorded of programs that train, in whatever style, and that they train as they would alone.

One process records all of them one after the other: TensorFlow starts once. The times of an account are those of a
plain timer in the script; what the agent takes out of a program is answered as if it had worked.
"""

from collections import Counter

from tests.capture.kit import *
from tests.capture.programs import *
from tests.capture.running import *
from tests.capture.spans import Mark, iterator_names, marks, numbers
from tests.capture.timed_programs import BEGIN, TEXT, TIMED_LOOPS, Account
from tests.e2e.kit import feeding, text_of
from tfdoctor.capture.agent.program.given import BATCHES
from tfdoctor.diagnose.diagnose import chart_of
from tfdoctor.edits.by_id import CHECKS
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.source_code.splice import Declined
from tfdoctor.source_code.tree import SyntaxTree
from tfdoctor.terms.kinds import Part
from tfdoctor.terms.verdict import Finding, Healthy, Severity
from tfdoctor.trace.model import Trace
from tfdoctor.trace.names import SAMPLED

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where all programs are and write."""
    return tmp_path_factory.mktemp("programs").resolve()


@pytest.fixture(scope="module")
def runs(folder: Path) -> dict[str, Run]:
    """Return the recordings of all programs, in one process."""
    (folder / "shared.py").write_text(SHARED)
    shutil.copy(BLOCKS, folder)
    programs = written(folder, PROGRAMS)
    plans = [plan(part, name, folder / "train_taken out.py") for part, names in PLANS.items() for name in names]
    (folder / "plans.json").write_text(json.dumps(plans))
    runs = together(folder, programs, slow_and_without_gpu(folder) if shutil.which("cc") else None)
    recorded = {name: run for name, run in runs.items() if run.out.exists()}
    assert [name for name, run in recorded.items() if run.manifest.agent_errors] == ["broken_agent"]
    return runs


def slow_and_without_gpu(folder: Path) -> dict[str, str]:
    """Return the environment of a machine whose files in `data` are slow, with a GPU whose driver does not answer.

    TensorFlow asks the stand-in for the driver, NVML the one for its library.
    """
    data, table = folder / "data", folder / "mountinfo"
    data.mkdir()
    table.write_text(f"1 0 0:1 / / rw - ext4 /dev/vda rw\n2 1 0:2 / {data} rw - nfs4 server:/data rw\n")
    compiled("slow_files_stub.c", folder / "slow.so", "-ldl")
    compiled("nvml_stub.c", folder / "lib" / "libnvidia-ml.so.1")
    compiled("cuda_stub.c", folder / "lib" / "libcuda.so.1", "-DERROR=100")
    slow = {"LD_PRELOAD": str(folder / "slow.so"), "SLOW_MS": "20", "SLOW_FOLDER": str(data)}
    env = environment(**slow, MOUNTINFO=str(table), LD_LIBRARY_PATH=str(folder / "lib"))
    del env["CUDA_VISIBLE_DEVICES"]
    return env


@pytest.fixture(scope="module")
def datasets(runs: dict[str, Run]) -> dict[str, Any]:
    assert "datasets" not in runs["datasets"].missing()
    return {dataset["class"]: dataset for dataset in runs["datasets"].program["datasets"]}


@cases(
    ("_OptionsDataset", "options threading.private_threadpool_size", 1),
    ("_OptionsDataset", "options autotune.enabled", False),
    ("_BatchDataset", "options autotune.enabled", None),
    ("_ShuffleDataset", "parameters reshuffle_each_iteration", False),
    # The function that its line calls:
    ("_MapDataset", "made_by", "map"),
    ("_TensorSliceDataset", "made_by", "from_tensor_slices"),
    # Files are counted and weighed (the median of 16 of them), and not named; several for each element all
    # count, and those elsewhere are left alone.
    ("_TensorSliceDataset", "files count", 20),
    ("_TensorSliceDataset", "files bytes", 76),
    ("_TensorSliceDataset", "files scheme", ""),
    ("_ShuffleDataset", "files", None),
    ("_TensorDataset", "files count", 4),
    ("TFRecordDatasetV2", "files", {"count": 2, "scheme": "gs", "bytes": None}),
)
def test_each_stage_is_described(kind: str, path: str, expected: object, datasets: dict[str, Any]) -> None:
    found = datasets[kind]
    for name in path.split(" "):
        found = found.get(name)
    assert found == expected


def test_a_cache_may_stand_behind_what_draws_nothing(runs: dict[str, Run]) -> None:
    program, declined = sure(runs["mapped"].recording.program), []
    paths = {one.at[0] for one in program.datasets if one.at and one.at[0].endswith("train_mapped.py")}
    lines = MAPPED.splitlines()
    first = 1 + lines.index("kept = [")
    for number in range(first + 1, 1 + lines.index("]")):
        try:
            CHECKS["cache"](program, SyntaxTree(MAPPED, *paths), number, "")
        except Declined as why:
            declined.append((number, str(why)))
    assert [number for number, _ in declined] == [at for at, line in enumerate(lines, 1) if "# draws" in line]
    assert not [why for _, why in declined if "no dataset" in why]


def test_operations_have_the_attributes_that_their_cost_depends_on(runs: dict[str, Run]) -> None:
    operations = [one for graph in runs["calls"].program["graphs"] for one in graph["operations"]]
    found = {(one["type"], str(one["attrs"])) for one in operations if one["type"] in {"MatMul", "Mean"}}
    straight, turned = ({"transpose_a": side} for side in (False, True))
    assert found == {("MatMul", str(straight)), ("MatMul", str(turned)), ("Mean", "{}")}


def test_lines_come_from_calls_after_the_window(runs: dict[str, Run]) -> None:
    """Nothing else does."""
    run = runs["calls"]
    window = run.window
    assert (window.steps, window.calls, window.stopped_by) == (20, 20, "steps")
    python = sure(sure(run.recording.program).python)
    measured_us = (sure(window.stopped_unix_ns) - sure(python.began_unix_ns)) / 1e3
    times = sorted(when for place in python.places for when in place.when_us)
    within = sum(time < measured_us for time in times)
    assert within * 8000 < measured_us  # each is followed by a rest of 10 ms at least
    later_us = times[-1] - measured_us  # much more often, however busy the machine is
    assert (len(times) - within) / later_us > 2 * within / measured_us

    chart = chart_of(run.recording)
    assert chart.fact(Steps).count == 20
    trace = chart.fact(Trace)
    assert list(trace.host_events(SAMPLED)) == []
    assert len(list(sure(trace.sampled).host_events(SAMPLED))) > 3
    later: Counter[int] = Counter()
    for place in python.places:
        if place.at is not None and not place.inside:
            later[place.at[1]] += sum(time > measured_us for time in place.when_us)
    assert later.most_common(1)[0][0] == 1 + CALLS[: CALLS.index("range(60_000)")].count("\n")


def test_only_back_propagation_without_use_is_told(runs: dict[str, Run]) -> None:
    """The traps: each gradient of theirs is applied, clipped, logged, kept or differentiated again."""
    lines, source = sure(runs["gradients"].manifest.steps.gradients), GRADIENTS.splitlines()
    assert all(line.followed for line in lines)
    told = [(source[line.at[1] - 1].strip(), line) for line in lines if line.at]
    assert len(told) == 13
    # A constant exponent has an operation of its own, whose result goes nowhere.
    useless = [(text, line) for text, line in told if line.operations > 1]
    assert [(text, line.returned, line.unused) for text, line in useless] == [
        ("return tape.gradient(loss, body + head)", 2, 2),
        ("apply(tape.gradient(loss, head), head)", 0, 2),
        ("penalty = tf.reduce_sum(inner.gradient(loss, x) ** 2)", 0, 4),  # the inner tape follows all variables
        ("return tape.gradient(loss, body + head)", 2, 2),
    ]
    assert useless[-1][1].traced == 5


@each(*LOOPS)
def test_the_padding_of_what_the_call_gets_is_seen(loop: str, runs: dict[str, Run]) -> None:
    run = runs[loop]
    assert "sequence lengths" not in run.missing()
    entry, _ = run.program["sequences"]
    assert entry["steps"] == [120] * BATCHES
    assert (entry["pad"], entry["leading"], entry["mask"]) == (0, False, False)
    assert [5 <= length < 60 for batch in entry["lengths"] for length in batch] == [True] * 8 * BATCHES


@cases(
    ("repeated", "repeated-call", 50, 20, range(10, 30)),
    ("gradient_tape", "eager-gradient", 40, 20, range(10, 30)),
    ("on_batch", "tf-data-loop", 40, 20, range(10, 30)),
    ("gan", "repeated-call", 40, 20, range(10, 30)),
    ("sessions", "session-run", 50, 20, range(10, 30)),
    ("mirrored", "tf-data-loop", 40, 20, (*range(10, 20), *range(21, 31))),
    ("in_graph", "graph-loop", 0, 0, ()),
    ("execution", "keras-fit", 80, 20, range(12, 29, 4)),  # five calls, though two would hold six steps
    ("keras_2", "keras-fit", 64, 20, range(12, 29, 4)),  # Keras' own: a second marker of ours would double them
    ("custom", "tf-data-loop", 36, 25, (*range(1, 12), *range(13, 25), 26, 27)),  # over its epochs
    ("own_profiler", "keras-fit", 60, 60, range(60)),
)
def test_a_style_is_seen(name: str, kind: str, seen: int, traced: int, marked: Any, runs: dict[str, Run]) -> None:
    steps, window = runs[name].manifest.steps, runs[name].window
    assert numbers(runs[name]) == [*marked]
    assert (steps.source, steps.seen, window.source) == (kind, seen, kind)
    assert (window.steps, window.calls, window.first_step) == (traced, len(marked), marked[0] if marked else 0)


def marked_steps(run: Run) -> list[Mark]:
    (trace,) = run.recording.traces
    return [mark for mark in marks(trace) if mark.name == "train"]


def said(run: Run, names: str) -> list[object]:
    """Return what is told of the run's program by these names."""
    return [run.program["run"][name] for name in names.split()]


def feeds(run: Run) -> list[object]:
    (found,) = (dataset for dataset in run.program["datasets"] if dataset["id"] == run.program["feeds"])
    return [found["class"], found["cardinality"], run.program["input_kind"]]


def branches(run: Run) -> tuple[set[str], list[str]]:
    (function,) = (one["function"] for one in run.program["datasets"] if one["class"] == "_MapDataset")
    return {"ReadFile", "DecodeRaw"} & {*function["types"]}, [
        one for one in function["stateful"] if "Random" in one
    ]


def graphs(run: Run) -> bool:
    return bool(run.program["graphs"])


def sources(run: Run) -> list[str]:
    return [Path(path).name for path in run.program["sources"]]


WARM_UP = "the block ended after 7 steps, during warm-up (10): record with warmup=3"

RECORDED: dict[str, tuple[str, Callable[[Run], object], object]] = {
    "two models in turn": ("gan", lambda run: [one.steps for one in run.manifest.steps.candidates], [40, 40, 40]),
    "a loop inside a function": ("in_graph", lambda run: run.window.at[0], str(STYLES)),
    "its graph": ("in_graph", graphs, True),
    "a strategy": ("mirrored", lambda run: said(run, "strategy replicas"), ["MirroredStrategy", 2]),
    "its line": ("mirrored", lambda run: said(run, "strategy_at"), [line_of(TRAINING, "MirroredStrategy(")]),
    "its devices": ("mirrored", lambda run: said(run, "replica_devices"), [["/physical_device:CPU:0"] * 2]),
    "steps per execution": ("execution", lambda run: {one.stat("steps") for one in marked_steps(run)}, {4}),
    "no graphs without a trace": ("without", graphs, False),
    "graphs of a trace after a block without one": ("with", graphs, True),
    # It has no graphs: only stack samples point into it. Without its hash no edit of it is possible.
    "the file of an eager loop": ("gradients", sources, ["train_gradients.py"]),
    "its graphs": ("gradients", graphs, False),
    "activities without a number": ("unnumbered", lambda run: "functions 0 1 0 0 number 0\n" in run.stdout, True),
    "layers of Keras 2": ("keras_2", lambda run: run.program["layers"][0]["at"][0], str(STYLES)),
    "its policy": ("keras_2", lambda run: said(run, "policy"), ["float32"]),
    "a custom loop": ("custom", lambda run: said(run, "optimizer batch_size"), ["Adam", 4]),
    "its data": ("custom", feeds, ["_BatchDataset", 12, "tf.data"]),
    "its functions": ("custom", lambda run: {"train", "check"} - {x["name"] for x in run.program["graphs"]}, set()),
    "the branches of a function": ("datasets", branches, ({"ReadFile", "DecodeRaw"}, ["RandomUniform"])),
    "why there is no trace": ("warm_up_only", lambda run: run.missing()["trace"], WARM_UP),
    "no trace": ("warm_up_only", lambda run: (run.recording.traces, run.manifest.window), ((), None)),
    "its layers": ("warm_up_only", lambda run: bool(run.program["layers"]), True),
    "the optimizer of a custom loop": ("scaled", lambda run: type(judged(run, "loss-scaling")), Healthy),
}


@each(*RECORDED)
def test_what_is_recorded(what: str, runs: dict[str, Run]) -> None:
    name, ask, told = RECORDED[what]
    assert ask(runs[name]) == told


def test_datasets_are_named_as_in_the_trace(runs: dict[str, Run]) -> None:
    run = runs["pipelines"]
    assert run.missing().keys() == {"samples"}  # nobody asked for them
    names = iterator_names(run.recording.traces[0])
    datasets = {dataset["id"]: dataset for dataset in run.program["datasets"]}
    chain = [datasets[run.program["feeds"]]]
    while chain[-1]["inputs"]:
        chain.append(datasets[chain[-1]["inputs"][0]])
    known = {dataset["class"]: dataset["trace_name"] for dataset in chain}
    assert None not in known.values()
    seen = {name.rstrip(")").rpartition(",")[2].rpartition("(")[2] for name in names}
    assert {known["_PrefetchDataset"], known["_TakeDataset"], known["_RepeatDataset"]} <= seen


def test_a_session(runs: dict[str, Run]) -> None:
    run = runs["sessions"]
    assert (run.stdout, [*run.missing()]) == (runs["plain"].stdout, ["samples"])
    types = {operation["type"] for graph in run.program["graphs"] for operation in graph["operations"]}
    assert "ResourceApplyAdam" in types


def test_validation_is_in_no_step(runs: dict[str, Run]) -> None:
    run = runs["custom"]
    kept, told = numbers(run), run.manifest.steps
    # The end of the data, at each epoch's end; a third one may have been traced for samples only:
    assert (told.discarded[:2], [one.source for one in told.candidates]) == ((12, 25), ["tf-data-loop"])
    steps = [mark for mark in marked_steps(run) if mark.stat("step_num") in kept]
    between: list[int] = []
    usual: list[int] = []
    for step, after in pairwise(steps):
        skipped = after.stat("step_num") - step.stat("step_num") - 1
        (between if skipped else usual).append(after.start_ps - step.start_ps - step.duration_ps)
    assert len(between) == 2
    assert min(between) > 3 * sorted(usual)[len(usual) // 2]


def test_the_users_running_profiler_is_marked_and_its_trace_used(runs: dict[str, Run]) -> None:
    run = runs["own_profiler"]
    assert (run.window.stopped_by, run.window.contains_warmup) == ("user-profiler", True)
    (theirs,) = run.out.parent.glob("theirs/plugins/profile/*/*.xplane.pb")
    (ours,) = run.recording.traces
    assert ours.read_bytes() == theirs.read_bytes()


def test_a_broken_hook_is_recorded_and_never_raised(runs: dict[str, Run]) -> None:
    run = runs["broken_agent"]
    assert run.stdout == runs["fit"].stdout == runs["own_profiler"].stdout  # the digests of their weights
    assert len(run.stdout) == 65
    assert {error.where for error in run.manifest.agent_errors} <= {"dataset", "layer", "fit", "metric"}
    assert "training broke" in run.manifest.agent_errors[0].error
    assert numbers(run)


def test_both_loops_of_a_run_are_found_with_their_lines(runs: dict[str, Run]) -> None:
    verdict = judged(runs["histograms"], "unvectorized-operation")
    assert isinstance(verdict, Finding), verdict
    assert verdict.summary == "vectorized_map runs HistogramFixedWidth once for each element, in two loops"
    lines = [
        number for number, line in enumerate(TEXT["histograms"].splitlines(), 1) if "tf.vectorized_map(" in line
    ]
    assert [f"line={line}" in str(verdict.evidence) for line in lines] == [True, True]


def test_the_call_and_recurrent_arguments_are_recorded(runs: dict[str, Run]) -> None:
    program = sure(runs["deterministic"].recording.program)
    (aid,) = program.run.debugging
    line = 1 + TEXT["deterministic"].splitlines().index("tf.config.experimental.enable_op_determinism()")
    assert (aid.aid, sure(aid.at)[1]) == ("op_determinism", line)
    layers = {layer.kind: layer for layer in program.layers or ()}
    lstm = sure(layers["LSTM"].recurrent)
    assert (lstm.recurrent_dropout, lstm.activation, lstm.recurrent_activation) == (0.5, "relu", "sigmoid")
    assert (lstm.unroll, lstm.use_bias, lstm.use_cudnn) == (False, True, "auto")
    assert (layers["Embedding"].masks, layers["Dense"].recurrent) == (True, None)


# Input from slow files, beside a GPU


def slow_files(runs: dict[str, Run]) -> Run:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    return runs["files"]


def test_reads_that_wait_for_a_server_are_found_in_a_run(runs: dict[str, Run]) -> None:
    run = slow_files(runs)
    kinds = {one["files"]["file_system"] for one in run.program["datasets"] if one["files"]}
    assert kinds == {"nfs4"}, json.dumps(run.program["datasets"])
    verdict = judged(run, "slow-storage")
    assert isinstance(verdict, Finding), verdict
    assert "NFS" in verdict.summary
    assert sure(verdict.remedies[0].at).path.endswith("train_files.py")


def test_a_run_beside_a_gpu_that_tensorflow_does_not_get_is_told(runs: dict[str, Run]) -> None:
    run = slow_files(runs)
    verdict = judged(run, "missing-gpu")
    assert isinstance(verdict, Finding), verdict
    why = "the driver does not answer (CUDA_ERROR_NO_DEVICE (100))"
    assert verdict.summary == f"The run computes on the CPU beside Stub 0: {why}"
    assert verdict.severity is Severity.WARNING


# Blocks: what was there before, and block after block


def without_logs(stderr: str) -> str:
    """Leave out what TensorFlow's C++ says, and that a callback of the script which records is slow."""
    logs = r"^.*(oneDNN|cudart|absl::|cpu_feature|instructions|is slow compared).*\n"
    return re.sub(logs, "", stderr, flags=re.MULTILINE)


def test_training_is_the_same_to_the_last_bit(runs: dict[str, Run]) -> None:
    plain, recorded = runs["plain blocks"], runs["blocks"]
    assert recorded.stdout == plain.stdout != ""
    assert without_logs(own_lines(recorded.stderr)) == without_logs(plain.stderr)


EAGER, FITS = "earlier between raising short lent", "fit part inner callback broken on_top outer"
BLOCKS_OF = [*EAGER.split(), *(f"{keras}/{name}" for keras in ("keras 3", "keras 2") for name in FITS.split())]


@pytest.fixture(scope="module")
def blocks(runs: dict[str, Run], folder: Path) -> Path:
    """The script that recorded its blocks, beside their recordings."""
    assert runs
    return folder / BLOCKS.name


def told_of(run: Run, script: Path) -> dict[str, object]:
    """Return what is recorded of a block: of a place the text of its line, of names in a trace whether they ran."""
    manifest, window, program = run.manifest, run.manifest.window, run.program
    ran = iterator_names(run.recording.traces[0]) if window else set[str]()
    told: dict[str, object] = {
        "traced": window and (window.source, window.first_step, window.steps, window.stopped_by),
        "steps seen": manifest.steps.seen,
        "ended": (manifest.finished, manifest.outcome.exit_code, manifest.outcome.error, *manifest.agent_errors),
        "command": [text_of([script.name, int(one.partition(":")[2])], script) for one in manifest.command],
        "missing": run.missing(),
        "graphs": [one["name"] for one in program["graphs"] if not re.search(r"_\d+$", one["name"])],
        "layers": {one["name"]: text_of(one["at"], script) for one in program["layers"]},
        "optimizer": program["run"]["optimizer"],
    }
    for number, one in enumerate(feeding(program)):
        named = one["trace_name"] and any(one["trace_name"] in name for name in ran)
        told[f"fed by {number} {one['class']}"] = text_of(one["at"], script), named
    return told


def test_each_block_is_a_recording_of_its_own(blocks: Path, golden: Callable[[str, str], None]) -> None:
    """What was made before has no line and no name, and what is made inside has both.

    What stands on nameless datasets loses its name, else the stages below it would be taken for parts of it, with
    its line; models that do not train are left out, for an operation of theirs may have the name of one that ran.
    """
    told = {name: told_of(recorded(blocks.parent / name), blocks) for name in BLOCKS_OF}
    told["keras 2/part"].pop("traced")  # Keras 2 has begun its marker already, perhaps
    ours = (name for name in BLOCKS_OF if name not in ("between", "lent") and "part" not in name)
    for run in (recorded(blocks.parent / name) for name in ours):
        first, steps = run.window.first_step or 0, run.window.steps
        assert numbers(run) == list(range(first, first + steps))
    golden("blocks.json", json.dumps(told, indent=1) + "\n")
    part = recorded(blocks.parent / "keras 2/part").window
    assert (part.source, part.steps, part.first_step in (3, 4)) == ("keras-fit", 5, True)


def test_a_block_can_be_traced_by_time(blocks: Path) -> None:
    window = recorded(blocks.parent / "timed").window
    assert (window.stopped_by, window.steps > 0) == ("time", True)


def test_the_users_own_profiler_comes_first_and_a_recorder_inside_a_block_steps_aside(
    runs: dict[str, Run], blocks: Path
) -> None:
    assert len(list((blocks.parent / "record logs").rglob("*.xplane.pb"))) == 1
    assert not list(blocks.parent.glob("*/within"))
    assert runs["blocks"].stderr.count("outer is still running: end it before you start another.\n") == 2


def test_a_function_that_was_traced_before_is_known_by_its_gradients(blocks: Path) -> None:
    (step,) = (graph for graph in recorded(blocks.parent / "earlier").program["graphs"] if graph["name"] == "step")
    lines = {operation["type"]: operation["at"] for operation in step["operations"]}
    assert lines["AssignSubVariableOp"] == line_of(blocks, "weights.assign_sub(")
    assert {operation["layer"] or None for operation in step["operations"]} == {None}


# What is taken out


def test_what_is_taken_out_is_answered_as_if_it_had_worked(
    runs: dict[str, Run], golden: Callable[[str, str], None]
) -> None:
    found = json.loads(runs["taken out"].out.with_name("found.json").read_text())
    assert set(range(16)) <= set(found.pop("drawn")) <= set(range(24))  # eight, and what tf.data makes ahead
    assert min(found["loss"]) > 0
    reached = found.pop("reached")
    found["reached"] = {part: reached[part] for part in (Part.EVALUATION, Part.PREDICTION)}  # at their lines alone
    assert reached[f"{Part.SUMMARIES} tf.summary"] >= 2, reached
    assert found.pop("predicted") != 7  # it is a copy of the last one of the same shapes
    for name in ("loss", "evaluated", "dict"):
        found[name] = sorted(found[name]) if name == "dict" else len(found[name])
    golden("without.json", json.dumps(found, indent=1, sort_keys=True))


def test_the_padding_of_batches_that_fit_takes_is_seen(runs: dict[str, Run]) -> None:
    """The agent takes them from fit's iterator before the window; they are trained on as if it did not."""
    run = runs["reviews"]
    (entry,) = [entry for entry in run.program["sequences"] if not entry["leading"]]
    assert (entry["batches"], entry["steps"]) == (True, [40] * len(entry["lengths"]))
    assert all(4 <= length < 12 for batch in entry["lengths"] for length in batch)
    assert not run.manifest.agent_errors


def test_training_and_the_users_generator_are_the_same_to_the_last_bit(runs: dict[str, Run]) -> None:
    assert runs["reviews"].stdout == runs["plain reviews"].stdout != ""


# The times of the account


@pytest.fixture(scope="module")
def accounts(runs: dict[str, Run], folder: Path) -> dict[str, Account]:
    return {
        name: Account(runs[f"timed {name}"].out, folder / f"{name}.json")
        for name in ("keras", "tf_keras", "loops", "threads", "session")
    }


@each("keras", "tf_keras")
def test_times_of_keras(keras: str, accounts: dict[str, Account]) -> None:
    found = accounts[keras]
    for kind in ("compile", "fit", "save"):
        found.agrees(found.seconds(kind), kind)
    entered = {"fit": 3, "epoch": 6, "compile": 2, "predict": 12, "evaluate": 5}
    assert found.entered(*entered) == entered
    assert found.spans() == {**entered, "save": 1}
    traced = found.of("trace")
    assert sum(line["name"] != "f" for line in traced) >= 4
    assert found.entered("step") == 6 * 20 + 20
    counted = found.count("keras-fit") + found.count("keras-train-on-batch")
    assert counted + len(traced) >= found.entered("step") > counted - 1
    assert found.seconds("predict") >= found.timed["predict"] - 0.03 - found.waited["predict"]
    found.is_whole()


def timed_line(text: str) -> int:
    """Return the number of a line of the script that trains in loops."""
    return BEGIN.count("\n") + 1 + TIMED_LOOPS.splitlines().index(text)


def test_times_of_loops(accounts: dict[str, Account]) -> None:
    loops = accounts["loops"]
    counts: Counter[int] = Counter()
    for step in loops.steps():
        counts[step["at"][1]] += step["steps"]
    loop = timed_line("        step(a, b, 0.1)")
    gan = timed_line("        other(a, b, 0.1)") - 1
    eager = timed_line("    w.assign_sub(rate * tape.gradient(loss, w))")
    one_line = timed_line("    return step(x, training).numpy()")
    assert counts == {loop: 59, gan: 20, gan + 1: 19, gan + 2: 20, eager: 60, one_line: 180}  # three were traced
    assert loops.entered("step") == 60 + 60 + 60 + 181
    first, second = (line for line in loops.of("trace") if line["name"] == "train")
    assert (first["at"][1], second["at"][1]) == (loop, gan + 1)
    assert (first["numbers"], first["given"]) == ([{"name": "rate", "value": "0.1", "place": 1}], 3)
    loops.agrees(loops.took(at=eager), "eager")
    loops.agrees(loops.took(at=loop) + first["ms"] / 1e3, "loop")
    loops.is_whole()


def test_a_validation_by_the_function_and_at_the_line_of_the_training(accounts: dict[str, Account]) -> None:
    loops = accounts["loops"]
    assert loops.entered("test") >= 12
    loops.agrees(loops.seconds("test"), "validation", calls=2)
    loops.agrees(loops.took(at=timed_line("    return step(x, training).numpy()")), "training", calls=5)


def test_times_of_sessions(accounts: dict[str, Account]) -> None:
    found = accounts["session"]
    assert found.count("session-run") == 100
    found.agrees(found.took(), "loop")
    found.agrees(found.seconds("save"), "save")
    assert found.entered("function") >= 51
    assert any(bucket["counters"].get("graph", 0) > 10 for bucket in found.of("bucket"))


def test_training_in_threads_and_then_in_the_main_thread(accounts: dict[str, Account]) -> None:
    found = accounts["threads"]
    assert (found.count("repeated-call"), found.count("eager-gradient")) == (2 * 51, 80)
    assert found.entered("step") == 2 * 51 + 80 + 20
    found.agrees(found.seconds("fit"), "fit")
    # A thread that trains is followed once its function is traced, which samples of it show until then.
    training, first = found.timed["training"], found.timed["first"]
    within = 0.12 + found.waited["training"]
    assert training - first - within <= found.took("repeated-call") <= training + within
    tracing = {stack["id"] for stack in found.of("stack") if stack["work"] in {"tracing", "building"}}
    sampled = sum(ms / 1e3 for number, ms in found.parts("stacks") if number in tracing)
    assert sampled >= 0.5 * found.timed["tracing"] > 0.05
