"""Does the agent work in each TensorFlow? ``python -m benchmarks.compat`` (``make compat``).

Each version gets an environment of its own below ``.compat``, made by uv. Three small scripts run there, each
plainly and under ``tfdoctor profile``, and the two runs are compared. The results become
docs/reference/compatibility.md; results of versions that were not asked for stay as they were.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks import commands, pages
from tfdoctor import __version__
from tfdoctor.capture.machine import host
from tfdoctor.recording import Manifest, Recording
from tfdoctor.terms.kinds import StepSource

HERE = Path(__file__).parent
ROOT = HERE.parent
CACHE = ROOT / ".compat"
PAGE = ROOT / "docs" / "reference" / "compatibility.md"

STEPS, TRACED = 80, 20
"""Training steps of each script, and how many of them tfdoctor traces by default."""

SCRIPTS = {"fit": StepSource.KERAS_FIT, "loop": StepSource.TF_DATA_LOOP, "session": StepSource.SESSION_RUN}
"""The scripts in benchmarks/versions, and how their steps are to be found."""

PROBE = """
import json, sys
from importlib.metadata import version
names = ("tensorflow-cpu", sys.argv[1], "numpy")
print(json.dumps([sys.version.split()[0], *map(version, names)]))
"""
"""Asks an interpreter for its version, and those of its packages."""


@dataclass(frozen=True, slots=True)
class Release:
    """A TensorFlow to try: which Python runs it, what pip installs, and whether Keras 2 replaces Keras 3."""

    name: str
    python: str
    packages: tuple[str, ...]
    legacy: bool = False

    @property
    def folder(self) -> Path:
        """Its environment; both Keras of one TensorFlow share it."""
        return CACHE / self.name.split("+")[0]

    @property
    def variables(self) -> dict[str, str]:
        """The further environment variables of its scripts."""
        return {"TF_USE_LEGACY_KERAS": "1"} if self.legacy else {}


def _release(number: str, python: str) -> Release:
    return Release(number, python, (f"tensorflow-cpu=={number}.*", "numpy<2"))


def _both(name: str, python: str, *packages: str) -> tuple[Release, Release]:
    """Return a TensorFlow with Keras 3, and the same with Keras 2."""
    with_old = (*packages, "tf_keras")
    return Release(name, python, with_old), Release(f"{name}+tf_keras", python, with_old, legacy=True)


RELEASES = (
    _release("2.9", "3.10"),
    _release("2.12", "3.11"),
    _release("2.15", "3.11"),
    *_both("2.16", "3.11", "tensorflow-cpu==2.16.*"),
    *_both("2.18", "3.11", "tensorflow-cpu==2.18.*"),
    *_both("newest", "3.13", "tensorflow-cpu"),
)
"""2.9 is the oldest that the agent supports. ``tensorflow-cpu`` is the same code without CUDA."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was found out about a release: a sentence for each script, "ok" if all is as it should be."""

    python: str
    tensorflow: str
    keras: str
    numpy: str
    date: str
    scripts: dict[str, str]


def prepare(release: Release) -> None:
    """Make the environment of a release, unless it is there."""
    if (release.folder / ".ready").exists():
        return
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if uv is None:
        raise SystemExit("uv is needed to make the environments: install it, `pip install uv`.")
    subprocess.run([uv, "venv", "--quiet", "--clear", "--python", release.python, str(release.folder)], check=True)
    python = str(interpreter(release))
    subprocess.run([uv, "pip", "install", "--quiet", "--python", python, *release.packages], check=True)
    (release.folder / ".ready").touch()


def interpreter(release: Release) -> Path:
    """Return the Python of a release."""
    return release.folder / "bin" / "python"


def judge(release: Release) -> Outcome:
    """Run the scripts of a release and return what was found."""
    words = ("-c", PROBE, "tf_keras" if release.legacy else "keras")
    asked = commands.output(interpreter(release), *words, variables=release.variables)
    python, tensorflow, keras, numpy = json.loads(asked.splitlines()[-1])
    scripts = {name: verdict(release, name) for name in SCRIPTS}
    return Outcome(python, tensorflow, keras, numpy, pages.today(), scripts)


def verdict(release: Release, script: str) -> str:
    """Run a script plainly and under tfdoctor; return "ok", or all that differs from what is expected."""
    with tempfile.TemporaryDirectory() as folder:
        plain, traced, out = (Path(folder, name) for name in ("plain.npy", "traced.npy", "out"))
        python, path = str(interpreter(release)), str(HERE / "versions" / f"{script}.py")
        profile = (*commands.TFDOCTOR, "profile", "--python", python, "--out", out)
        for command in ((python, path, plain), (*profile, path, traced)):
            done = commands.ended(*command, variables=release.variables)
            if done.returncode:
                return f"exit code {done.returncode}: {(done.stderr.strip() or '?').splitlines()[-1]}"
        faults = [*_recorded(out, SCRIPTS[script]), *_reported(out, SCRIPTS[script])]
        if plain.read_bytes() != traced.read_bytes():
            faults.append("the weights differ")
        return "; ".join(faults) or "ok"


def _recorded(out: Path, source: StepSource) -> list[str]:
    """Return what is wrong with a recording."""
    manifest = Recording.open(out).manifest or Manifest()
    window = manifest.window
    traced = window.steps if window else 0
    return [
        *([] if manifest.finished else ["the recording has no end"]),
        *(f"{lack.what} is missing: {lack.why}" for lack in manifest.missing),
        *(f"fault of the agent in {fault.where}: {fault.error}" for fault in manifest.agent_errors),
        *([] if manifest.steps.seen == STEPS else [f"{manifest.steps.seen} of {STEPS} steps seen"]),
        *([] if manifest.steps.source == source else [f"steps found by {manifest.steps.source}"]),
        *([] if traced == TRACED else [f"{traced} of {TRACED} steps traced"]),
    ]


def _reported(out: Path, source: StepSource) -> list[str]:
    """Return what is wrong with the report."""
    steps = commands.report(out)["steps"]
    html = (out / "report.html").read_text()
    return [
        *([] if html.rstrip().endswith("</html>") else ["the HTML report has no end"]),
        *([] if steps["source"] == source else [f"the report names {steps['source']}"]),
    ]


def page(outcomes: dict[str, Outcome]) -> str:
    """Return the page of the manual."""
    rows = "\n".join(_row(outcomes[release.name]) for release in RELEASES if release.name in outcomes)
    machine = host()
    return f"""# Compatibility

The part of tfdoctor that runs inside your training process was tried in these versions of TensorFlow. tfdoctor
itself is installed in an environment of its own, or in yours.

| TensorFlow | Keras | Python | NumPy | `Model.fit` | custom loop | `Session` | measured |
|---|---|---|---|---|---|---|---|
{rows}

*ok* means that all of this is so:

- the script ends as without tfdoctor, and its final weights are the same, bit for bit. Seeds are fixed and
  operations are deterministic;
- the recording is complete: no part is missing, and nothing failed inside the recorder;
- all {STEPS} training steps are counted, by the expected method: `keras-fit`, `tf-data-loop` or `session-run`
  ([how steps are found](../explanation/steps.md)). {TRACED} of them are traced;
- the report is written and names the same method.

Where Keras is 2 and TensorFlow 2.16 or later, `TF_USE_LEGACY_KERAS=1` is set and `tf_keras` is used. The packages
are `tensorflow-cpu`, the builds of TensorFlow without CUDA; GPUs are not part of this check. The scripts are in
`benchmarks/versions`. tfdoctor {__version__} was measured on {machine.cores_logical}
cores of {machine.cpu_model}. To repeat it, run `make compat`, which downloads several GB into `.compat/`.
"""


def _row(outcome: Outcome) -> str:
    versions = (outcome.tensorflow, outcome.keras, outcome.python, outcome.numpy)
    verdicts = (outcome.scripts[name] for name in SCRIPTS)
    return f"| {' | '.join((*versions, *verdicts, outcome.date))} |"


def known() -> dict[str, Outcome]:
    """Return the outcomes of earlier calls."""
    files = sorted(CACHE.glob("*.json"))
    return {path.stem: Outcome(**json.loads(path.read_text())) for path in files}


def main() -> None:
    """Try the releases that were named, or all, and write the page; exit code 1 if one has a fault."""
    parser = commands.parser(__doc__)
    names = [release.name for release in RELEASES]
    parser.add_argument("release", nargs="*", help=f"which to try; default: {', '.join(names)}")
    wanted = parser.parse_args().release or names
    if unknown := set(wanted) - set(names):
        parser.error(f"no such release: {', '.join(sorted(unknown))}")
    CACHE.mkdir(exist_ok=True)
    failed = False
    for release in RELEASES:
        if release.name not in wanted:
            continue
        prepare(release)
        outcome = judge(release)
        print(release.name, outcome.scripts, flush=True)
        (CACHE / f"{release.name}.json").write_text(json.dumps(asdict(outcome), indent=1))
        failed |= set(outcome.scripts.values()) != {"ok"}
    PAGE.write_text(page(known()))
    sys.exit(failed)


if __name__ == "__main__":
    main()
