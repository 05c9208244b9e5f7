"""What tests of the command line are written with: ``from tests.cli.kit import *``."""

import functools
import hashlib
import operator

from tests.capture.running import SOURCES, cli, environment
from tests.command import tfdoctor
from tests.facts.kit import Names, Told
from tests.kit import *

SAMPLES = Path(__file__).parents[2] / "sample_traces"
SLOW, FIXED = SAMPLES / "cpu-input-bound", SAMPLES / "cpu-input-bound-fixed"
CONVNET = SAMPLES / "cpu-float32-convnet"


def run(*words: object) -> tuple[int, str]:
    """Run `tfdoctor WORDS`; return its exit code, and its words without our name before an error."""
    done = tfdoctor(*map(str, words))
    return done.returncode, " ".join((done.stdout + done.stderr.removeprefix("tfdoctor: ")).split())


def printed(*words: object) -> tuple[str, ...]:
    """Run `tfdoctor WORDS`; return the lines that it prints and its exit code, with the samples by their names."""
    done = tfdoctor(*map(str, words))
    text = (done.stdout + done.stderr).replace(f"{SAMPLES}/", "")
    return (*filter(None, map(str.rstrip, text.splitlines())), f"exit code {done.returncode}")


def refused(line: str) -> str:
    """Return the one sentence that a command line gets; the folder in which it is given stays as it is."""
    before = content(Path())
    done = tfdoctor(*shlex.split(line.format(slow=SLOW, fixed=FIXED)))
    assert (done.returncode, done.stdout, done.stderr[:10], done.stderr.count("\n")) == (2, "", "tfdoctor: ", 1), (
        line
    )
    assert content(Path()) == before, line
    return done.stderr.strip().removeprefix("tfdoctor: ").replace(f"{SAMPLES}/", "").replace(f"{Path.cwd()}/", "")


@cache
def report_of(sample: Path, *words: str) -> str:
    """Return the report.json of a sample, made away from any settings."""
    with TemporaryDirectory() as folder, contextlib.chdir(folder):
        assert tfdoctor("report", str(sample), "--format", "json", "--out", folder, *words).returncode == 0
        return Path(folder, "report.json").read_text()


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Go to a folder of its own, where nothing is asked of the screen."""
    monkeypatch.chdir(tmp_path)
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


# A recording that can be run again, made of a sample's trace and a script that does not train

SCRIPT = """from pathlib import Path

with Path("ran.txt").open("a") as file:
    file.write("ran\\n")
"""


def made(folder: Path, **changes: Any) -> Path:
    """Return the recording of `train.py` in a folder, which notes in `ran.txt` that it ran."""
    (folder / "train.py").write_text(SCRIPT)
    out = shutil.copytree(CONVNET, folder / "recording")
    (out / "program.json.gz").unlink()
    written: dict[str, Any] = json.loads((out / "tfdoctor.json").read_text())
    manifest = {
        **written,
        "command": [sys.executable, "train.py"],
        "cwd": str(folder),
        "plan": {**written["plan"], "kind": "script", "script": "train.py"},
        "written": {"count": 4, "names": ["a.ckpt", "b.ckpt", "c.ckpt", "log.txt"]},
        **changes,
    }
    (out / "tfdoctor.json").write_text(json.dumps(manifest))
    return out


def content(folder: Path) -> dict[str, str]:
    """Return a digest of every file below a folder, and of every folder nothing."""
    files = {path: path.read_bytes() if path.is_file() else b"" for path in sorted(folder.rglob("*"))}
    return {str(path.relative_to(folder)): hashlib.sha256(data).hexdigest() for path, data in files.items()}
