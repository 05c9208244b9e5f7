"""Real TensorFlow under tfdoctor: what is traced, what is learnt, and that nothing else changes."""

import hashlib

from tests.capture.timed_programs import Account
from tests.e2e.kit import *
from tfdoctor.recording.program import DIGITS

pytestmark = pytest.mark.tensorflow

STAMP = re.compile(r"(?<=^[IWEF])\d{4} [\d:.]+ +\d+(?= )", re.MULTILINE)
"""The time and process of a line of TensorFlow's log."""

Profile = Callable[..., Run]


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The training script in a folder of its own, as a user has it."""
    return Path(shutil.copy(SCRIPTS / "training.py", tmp_path_factory.mktemp("project") / "train.py"))


@pytest.fixture(scope="module")
def profile(script: Path, tmp_path_factory: pytest.TempPathFactory) -> Profile:
    def run(mode: str, *args: str, **plan: Any) -> Run:
        return clean(profiled(script, tmp_path_factory.mktemp("recordings") / mode, mode, *args, **plan))

    return run


@pytest.fixture(scope="module")
def fit(profile: Profile) -> Run:
    return profile("fit")


def traced(run: Run, name: str) -> list[Mark]:
    (trace,) = run.recording.traces
    return [mark for mark in marks(trace) if mark.name == name]


# Keras fit


def test_fit_is_traced_as_planned(fit: Run) -> None:
    assert numbers(fit) == list(range(10, 30))
    assert {(mark.stat("_r"), mark.stat("steps")) for mark in traced(fit, "train")} == {(1, 1)}
    window = fit.window
    assert (window.first_step, window.steps, window.calls) == (10, 20, 20)
    assert (window.stopped_by, window.source, window.contains_warmup) == ("steps", "keras-fit", False)
    assert (fit.code, fit.manifest.steps.seen) == (0, 60)


def test_fit_says_what_it_cost(fit: Run) -> None:
    untraced = fit.manifest.steps.untraced
    assert untraced is not None
    # 60 less 20 traced, up to half of the 30 after them, which are sampled, the one that builds, and the last:
    assert 23 <= untraced.count < 38
    assert 0 < (untraced.median_ms or 0.0) < 1000


def test_versions_and_host_are_known(fit: Run) -> None:
    assert fit.manifest.versions is not None
    assert set(fit.manifest.versions) >= {"python", "tensorflow", "keras", "numpy"}
    assert fit.manifest.host.cores_usable > 0
    host = fit.recording.samples[-1].host
    assert host is not None
    assert (host.memory_total_bytes or 0) > 0


def test_what_is_known_of_the_program(fit: Run, script: Path, golden: Callable[[str, str], None]) -> None:
    """Of its products, which forward pass they are of, and what comes into them; its layers; what feeds it."""

    def parts(of: Any, names: str) -> dict[str, object]:
        return {name: text_of(of[name], script) if name == "at" else of[name] for name in names.split()}

    program = fit.program
    graph = next(one for one in program["graphs"] if one["name"] == "one_step_on_data")
    found: dict[str, Any] = {
        "products": [
            parts(one, "inputs outputs layer at")
            | {"feeding": graph["operations"][one["from"][0]]["outputs"], "transposed": one["attrs"]["transpose_a"]}
            for one in graph["operations"]
            if one["type"] == "MatMul" and not one["name"].startswith("gradient_tape")
        ],
        "layers": [parts(one, "name class at compute_dtype trainable") for one in program["layers"]],
        "pipeline": [parts(one, "class parameters cardinality at") for one in feeding(program)],
        "functions": [
            parts(one["function"], "name at python types stateful") for one in feeding(program) if one["function"]
        ],
        "run": {name: program["run"].get(name) for name in RUN.split()},
        "input": program["input_kind"],
    }
    assert {one["trace_name"] for one in feeding(program)} <= iterator_names(fit.recording.traces[0])
    golden("program.json", json.dumps(found, indent=1) + "\n")


RUN = "policy optimizer steps_per_execution devices strategy replicas replica_devices"
"""The default strategy does not tell which devices its replicas have."""


def test_sources_are_hashed(fit: Run, script: Path) -> None:
    assert list(fit.program["sources"]) == list(fit.program["lines"]) == [str(script)]
    digits, text = fit.program["lines"][str(script)], script.read_bytes().splitlines()
    assert len(digits) == DIGITS * len(text)
    assert digits[DIGITS : 2 * DIGITS] == hashlib.sha256(text[1].strip()).hexdigest()[:DIGITS]


# Ends


def test_ctrl_c_in_the_window_of_a_fit_of_arrays_after_the_users_own_profiler(
    profile: Profile, script: Path, tmp_path: Path
) -> None:
    """The profiler's messages stand in the script's output for theirs, and not for our windows before and after."""
    theirs = tmp_path / "theirs"
    run = profile("arrays", str(theirs), env=environment(TF_CPP_MIN_LOG_LEVEL="0"))
    assert (run.code, run.window.stopped_by, run.program["input_kind"]) == (130, "interrupt", "arrays")
    assert numbers(run) == list(range(18, 30))  # theirs is over, and ours begins anew
    datasets = {dataset["id"]: dataset for dataset in run.program["datasets"]}
    assert datasets[run.program["feeds"]]["at"] == line_of(script, "batch_size=4, epochs=1")
    assert run.program["run"]["batch_size"] == 4
    assert list(theirs.glob("plugins/profile/*/*.xplane.pb"))
    assert run.stderr.count("Profiler session started") == 1
    assert re.findall("Collecting XSpace to repository: (.*)/plugins", run.stderr) == [str(theirs)]


def test_stop_after_ends_the_run_and_runs_finally(profile: Profile, tmp_path: Path) -> None:
    """So do handlers of the end, and no open file loses anything; threads that feed an iterator hold nothing up."""
    file = tmp_path / "left_open"
    run = profile("finally_runs", str(file), stop_after=True, warmup=3, steps=4)
    assert (run.code, run.stdout, file.read_text()) == (0, "cleaned up\nhandled\n", "written")
    assert numbers(run) == [3, 4, 5, 6]
    assert 7 <= run.manifest.steps.seen <= 7 + 5 * 4  # those that are sampled


# Failures


def test_exceptions_are_the_scripts_and_end_the_call_they_come_from(script: Path, tmp_path: Path) -> None:
    """What was trained until then is the same to the last bit, and the message of an operation that fails."""
    fails = Path(shutil.copy(SCRIPTS / "fails.txt", script.with_name("fails.py")))
    shutil.copy(script, script.with_name("training.py"))
    alone, run = plain(fails), clean(profiled(fails, tmp_path / "out"))
    assert run.code == alone.returncode == 1
    assert len(alone.stdout.split()[0]) == 64
    assert without_hooks(run.stdout) == GENERATED.sub("generated", alone.stdout)
    assert "Detected at node" in alone.stderr
    assert STAMP.sub("", tracebacks(own_lines(run.stderr))) == STAMP.sub("", tracebacks(alone.stderr))
    found = Account(run.out)
    assert (found.end["why"], found.end["at"]) == ("exception", line_of(fails, "# ends the run"))
    assert not (run.out / "run-now.json").exists()
    assert (found.spans()["fit"], found.spans()["epoch"]) == (3, 2)  # the first one failed before its epoch
    assert max(step["calls"] for step in found.steps()) >= 19


HOOK = re.compile(r'  File ".*\(tfdoctor\)", line \d+, in \w+\n(    .*\n)*')
GENERATED = re.compile(r"__autograph_generated_file\w+")


def without_hooks(text: str) -> str:
    """Return tracebacks without the frames of hooks, which Python cannot hide where the script prints them."""
    return GENERATED.sub("generated", HOOK.sub("", text))


def tracebacks(stderr: str) -> str:
    """Return a stderr from its first traceback on: before that TensorFlow's own messages may differ."""
    return stderr[stderr.index("Traceback") :]
