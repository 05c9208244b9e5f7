"""Real TensorFlow recorded from within: what was there before, and block after block."""

from tests.e2e.kit import *

pytestmark = pytest.mark.tensorflow

BLOCKS = SCRIPTS / "blocks.py"

Did = Callable[[str], Run]
"""What blocks.py did, by the name of a recording; the script lies beside it."""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copy(BLOCKS, tmp_path_factory.mktemp("record")))


@pytest.fixture(scope="module")
def recorded(script: Path) -> subprocess.CompletedProcess[str]:
    return ended([sys.executable, str(script), "record"], script.parent, env=environment())


@pytest.fixture(scope="module")
def did(script: Path, recorded: subprocess.CompletedProcess[str]) -> Did:
    assert recorded.returncode == 0, recorded.stderr
    return lambda name: Run(0, recorded.stdout, recorded.stderr, script.parent / name)


def without_logs(stderr: str) -> str:
    """Leave out what TensorFlow's C++ says, and that a callback of the script which records is slow."""
    logs = r"^.*(oneDNN|cudart|absl::|cpu_feature|instructions|is slow compared).*\n"
    return re.sub(logs, "", stderr, flags=re.MULTILINE)


def test_training_is_the_same_to_the_last_bit(recorded: subprocess.CompletedProcess[str], tmp_path: Path) -> None:
    plain = ended([sys.executable, str(BLOCKS), "plain"], tmp_path, env=environment())
    assert recorded.stdout == plain.stdout != ""
    assert without_logs(own_lines(recorded.stderr)) == without_logs(plain.stderr)


LOOPS, FITS = "earlier between raising short lent", "fit part inner callback broken on_top outer"
BLOCKS_OF = [*LOOPS.split(), *(f"{keras}/{name}" for keras in ("keras 3", "keras 2") for name in FITS.split())]


def told_of(run: Run, script: Path) -> dict[str, object]:
    """Return what is recorded of a block: of a place the text of its line, of names in a trace whether they ran."""
    manifest, window, program = run.manifest, run.manifest.window, run.program
    ran = iterator_names(run.recording.traces[0]) if window else set[str]()
    told: dict[str, object] = {
        "traced": window and (window.source, window.first_step, window.steps, window.stopped_by, window.profiler),
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


def test_each_block_is_a_recording_of_its_own(did: Did, script: Path, golden: Callable[[str, str], None]) -> None:
    """What was made before has no line and no name, and what is made inside has both.

    What stands on nameless datasets loses its name, else the stages below it would be taken for parts of it, with
    its line; models that do not train are left out, for an operation of theirs may have the name of one that ran.
    """
    told = {name: told_of(did(name), script) for name in BLOCKS_OF}
    told["keras 2/part"].pop("traced")  # Keras 2 has begun its marker already, perhaps
    for run in (did(name) for name in BLOCKS_OF if name not in ("between", "lent") and "part" not in name):
        first, steps = run.window.first_step or 0, run.window.steps
        assert numbers(run) == list(range(first, first + steps))
    golden("blocks.json", json.dumps(told, indent=1) + "\n")
    part = did("keras 2/part").window
    assert (part.source, part.steps, part.first_step in (3, 4)) == ("keras-fit", 5, True)


def test_a_block_can_be_traced_by_time(did: Did) -> None:
    window = did("timed").window
    assert (window.stopped_by, window.steps > 0) == ("time", True)


def test_the_users_own_profiler_comes_first_and_a_recorder_inside_a_block_steps_aside(
    did: Did, script: Path
) -> None:
    assert len(list(script.with_name("logs").rglob("*.xplane.pb"))) == 1
    assert not list(script.parent.glob("*/within"))
    assert did("").stderr.count("outer is still running: end it before you start another.\n") == 2


def test_a_function_that_was_traced_before_is_known_by_its_gradients(did: Did, script: Path) -> None:
    (step,) = (graph for graph in did("earlier").program["graphs"] if graph["name"] == "step")
    lines = {operation["type"]: operation["at"] for operation in step["operations"]}
    assert lines["AssignSubVariableOp"] == line_of(script, "weights.assign_sub(")
    assert {operation["layer"] or None for operation in step["operations"]} == {None}
