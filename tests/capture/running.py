"""Runs scripts with and without tfdoctor, in real processes."""

from functools import cached_property

from tests.cases import sure
from tests.kit import *
from tfdoctor.diagnose.diagnose import diagnose
from tfdoctor.recording import PROGRAM, Recording
from tfdoctor.rules import all_rules
from tfdoctor.terms.verdict import Outcome

DRIVER = Path(__file__).with_name("driver.py")
SOURCES = Path(__file__).parents[2] / "src"

QUIET = {"CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "1"}


Environment = Mapping[str, str] | None


@dataclass(frozen=True)
class Run:
    """What a script did under tfdoctor."""

    code: int
    stdout: str
    stderr: str
    out: Path

    recording = property(lambda self: Recording.open(self.out))
    manifest = property(lambda self: sure(self.recording.manifest))
    window = property(lambda self: sure(self.manifest.window))
    times = property(lambda self: sure(self.manifest.times))
    log = property(lambda self: sure(self.recording.run), doc="The account of the run.")
    program = property(
        lambda self: json.loads(gzip.decompress((self.out / PROGRAM).read_bytes())), doc="As written."
    )

    def missing(self) -> dict[str, str]:
        return {entry.what: entry.why for entry in self.manifest.missing}


class Ended(Run):
    """One of which no process goes on: what it recorded is read once."""

    recording = cached_property(lambda self: Recording.open(self.out))


def recorded(out: Path) -> Run:
    """Return what stands in a folder, of a run of which nothing else is known."""
    return Ended(0, "", "", out)


def run_of(done: subprocess.CompletedProcess[str], out: Path) -> Run:
    return Run(done.returncode, done.stdout, done.stderr, out)


def environment(**extra: str) -> dict[str, str]:
    """Return a plain environment, whatever pytest runs in."""
    kept = {"PATH", "HOME", "LANG", "TMPDIR"}
    return {key: os.environ[key] for key in kept if key in os.environ} | QUIET | extra


def command(script: Path | str, out: Path, *args: str, **plan: object) -> list[str]:
    options = {"script": str(script), "args": list(args), "out": str(out), **plan}
    start = f"import sys; sys.path.insert(0, {str(SOURCES)!r}); import runpy; "
    start += f"sys.argv = sys.argv[1:]; runpy.run_path({str(DRIVER)!r}, run_name='__main__')"
    return [sys.executable, "-c", start, "driver", json.dumps(options)]


def started(words: list[str], folder: Path, **options: Any) -> subprocess.Popen[str]:
    """Start a command in a group of its own, and wait until it says "ready"."""
    given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "start_new_session": True, **options}
    process = subprocess.Popen(words, text=True, cwd=folder, env=environment(PYTHONPATH=str(SOURCES)), **given)
    assert sure(process.stdout).readline() == "ready\n"
    return process


def until(reached: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait until something is so."""
    end = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < end
        time.sleep(0.02)


def ended(
    words: list[str], folder: Path, *, stdin: str = "", env: Environment = None, timeout_s: float = 300
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    given: dict[str, Any] = {"input": stdin, "env": env or environment(), "timeout": timeout_s}
    return subprocess.run(words, capture_output=True, text=True, cwd=folder, check=False, **given)


def profiled(script: Path, out: Path, *args: str, stdin: str = "", env: Environment = None, **plan: object) -> Run:
    """Run a script under tfdoctor, in its own folder."""
    return run_of(ended(command(script, out, *args, **plan), script.parent, stdin=stdin, env=env), out)


def ran(script: Path, source: str, *args: str, **given: Any) -> Run:
    """Write a script and run it under tfdoctor, which takes no samples."""
    script.write_text(source)
    return profiled(script, script.with_name("out"), *args, **{"sample_every_ms": 0, **given})


def plain(script: Path, *args: str, stdin: str = "", env: Environment = None) -> subprocess.CompletedProcess[str]:
    """Run a script as anyone would."""
    return ended([sys.executable, str(script), *args], script.parent, stdin=stdin, env=env)


def cli(*words: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run tfdoctor from the command line."""
    own = environment(PYTHONPATH=str(SOURCES), **variables)
    return ended([sys.executable, "-m", "tfdoctor", *words], folder, env=own)


TEXT_OF = {name: f"\n{text}" for name, text in text_parts(Path(__file__).with_name("scripts.txt")).items()}
"""What tests of this folder run, by what it does."""

BUSY = """
import contextlib, os, sys, time
def work(seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        sum(range(1000))
"""

TOGETHER = """
import contextlib, gc, json, os, runpy, sys, tfdoctor
folder = os.getcwd()
for out, (words, plan) in json.loads(sys.argv[1]).items():
    script = os.path.join(folder, words[0])
    sys.argv = [script, *words[1:]]
    sys.path[0] = os.path.dirname(script)
    for number, stream in enumerate((sys.stdout, sys.stderr), 1):
        stream.flush()
        with open(os.path.join(folder, f"{out}.{number}"), "w") as file:
            os.dup2(file.fileno(), number)
    context = tfdoctor.record(os.path.join(folder, out), **plan) if plan else contextlib.nullcontext()
    with context:
        if budget := sys.modules.get("_tfdoctor_agent.process.budget"):
            budget.LEAST_S = budget.LONGEST_S = 60.0  # on a busy machine a profiler may cost a short run as much
        runpy.run_path(script, run_name="__main__")
    if not gc.get_freeze_count():
        gc.freeze()  # a block looks for what lives before it: of TensorFlow's own objects, not over and over
"""


Programs = Mapping[str, tuple[Sequence[object], Mapping[str, object] | None]]
"""Where each program is recorded, its words, and the plan; one without a plan runs without being recorded."""


def together(folder: Path, programs: Programs, env: dict[str, str] | None = None) -> dict[str, Run]:
    """Record programs one after the other in one process, in which TensorFlow starts once."""
    given = {
        out: ([str(word) for word in words], plan and {"sample_every_ms": 0, **plan})
        for out, (words, plan) in programs.items()
    }
    words, env = [sys.executable, "-c", TOGETHER, json.dumps(given)], env or environment()
    done = ended(words, folder, env=env | {"PYTHONPATH": str(SOURCES)}, timeout_s=1200)
    said = {path.name: path.read_text() for path in folder.glob("*.[12]")}
    assert done.returncode == 0, (done.stderr, said)
    return {out: Ended(0, said[f"{out}.1"], said[f"{out}.2"], folder / out) for out in programs}


def judged(run: Run, name: str) -> Outcome:
    """Return what a rule finds in a run."""
    rules = [rule for rule in all_rules() if rule.name == name]
    (result,) = diagnose(run.recording, rules, "", ask_xprof=False).results
    return result.outcome


def line_of(script: Path, text: str) -> list[object]:
    """Return the place of the one line of a script with this text, as recordings have it."""
    lines = script.read_text().splitlines()
    (number,) = (number for number, line in enumerate(lines, 1) if text in line)
    return [str(script), number]


def training(folder: Path) -> Path:
    """Return a script that takes 40 steps of a small loop over a dataset, and says so."""
    path = folder / "train.py"
    path.write_text(_TRAINING)
    return path


_TRAINING = """
import sys
def main(steps=40):
    import tensorflow as tf
    if budget := sys.modules.get("_tfdoctor_agent.process.budget"):
        budget.LEAST_S = budget.LONGEST_S = 60.0  # on a busy machine a profiler may cost a short run as much
    weights = tf.Variable(tf.zeros((4, 1)))
    data = tf.data.Dataset.from_tensor_slices(tf.ones((8, 4))).repeat().batch(2).take(steps)
    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((tf.matmul(x, weights) - 1.0) ** 2)
        weights.assign_sub(0.01 * tape.gradient(loss, weights))
    for x in data:
        step(x)
    print("trained", *sys.argv[1:], flush=True)
if __name__ == "__main__":
    main()
"""


def shell(words: list[str], out: Path, folder: Path, *, env: Environment = None, **plan: Any) -> Run:
    """Run a command under tfdoctor: `tfdoctor profile -- WORDS`."""
    given = {"kind": "command", "sample_every_ms": 0, **plan}
    return run_of(ended(command(words[0], out, *words[1:], **given), folder, env=env), out)


def compiled(source: str, library: Path, *flags: str) -> None:
    """Compile a stand-in of this folder, or skip the test where there is no compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    library.parent.mkdir(exist_ok=True)
    words = [compiler, "-shared", "-fPIC", "-o", str(library), str(DRIVER.with_name(source)), *flags]
    subprocess.run(words, check=True)


def fake_tensorflow(folder: Path) -> None:
    """Put a package of that name where scripts of this folder find it: the hook comes in by it."""
    (folder / "tensorflow").mkdir()
    (folder / "tensorflow" / "__init__.py").write_text("__version__ = '2.0'\n")


def own_lines(stderr: str) -> str:
    """Return a run's stderr without the sentence that tfdoctor adds."""
    return "".join(line for line in stderr.splitlines(keepends=True) if not line.startswith("tfdoctor: "))
