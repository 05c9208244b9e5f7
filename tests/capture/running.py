"""Runs scripts with and without tfdoctor, in real processes."""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfdoctor.recording import PROGRAM, Manifest, Recording
from tfdoctor.recording.agent import TracedWindow
from tfdoctor.recording.manifest import RunTimes
from tfdoctor.recording.run_log import RunLog

DRIVER = Path(__file__).with_name("driver.py")
SOURCES = Path(__file__).parents[2] / "src"

QUIET = {"CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "1"}


@dataclass(frozen=True)
class Run:
    """What a script did under tfdoctor."""

    code: int
    stdout: str
    stderr: str
    out: Path

    @property
    def recording(self) -> Recording:
        return Recording.open(self.out)

    @property
    def manifest(self) -> Manifest:
        manifest = self.recording.manifest
        assert manifest is not None
        return manifest

    @property
    def window(self) -> TracedWindow:
        window = self.manifest.window
        assert window is not None
        return window

    @property
    def times(self) -> RunTimes:
        times = self.manifest.times
        assert times is not None
        return times

    @property
    def log(self) -> RunLog:
        """The account of the run."""
        log = self.recording.run
        assert log is not None
        return log

    @property
    def program(self) -> Mapping[str, Any]:
        """What was written, without the reading of it."""
        written: Mapping[str, Any] = json.loads(gzip.decompress((self.out / PROGRAM).read_bytes()))
        return written

    def missing(self) -> dict[str, str]:
        return {entry.what: entry.why for entry in self.manifest.missing}


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
    process = subprocess.Popen(
        words,
        text=True,
        cwd=folder,
        env=environment(PYTHONPATH=str(SOURCES)),
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "start_new_session": True, **options},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def ended(
    words: list[str], folder: Path, *, stdin: str = "", env: Mapping[str, str] | None = None, timeout_s: float = 300
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        words,
        input=stdin,
        capture_output=True,
        text=True,
        cwd=folder,
        env=env or environment(),
        timeout=timeout_s,
        check=False,
    )


def profiled(
    script: Path, out: Path, *args: str, stdin: str = "", env: Mapping[str, str] | None = None, **plan: object
) -> Run:
    """Run a script under tfdoctor, in its own folder."""
    done = ended(command(script, out, *args, **plan), script.parent, stdin=stdin, env=env)
    return Run(done.returncode, done.stdout, done.stderr, out)


def plain(
    script: Path, *args: str, stdin: str = "", env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a script as anyone would."""
    return ended([sys.executable, str(script), *args], script.parent, stdin=stdin, env=env)


def cli(*words: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run tfdoctor from the command line."""
    own = environment(PYTHONPATH=str(SOURCES), **variables)
    return ended([sys.executable, "-m", "tfdoctor", *words], folder, env=own)


TOGETHER = """
import contextlib, json, os, runpy, sys, tfdoctor
folder = os.getcwd()
for out, (words, plan) in json.loads(sys.argv[1]).items():
    script = os.path.join(folder, words[0])
    sys.argv = [script, *words[1:]]
    sys.path[0] = os.path.dirname(script)
    context = tfdoctor.record(os.path.join(folder, out), **plan) if plan else contextlib.nullcontext()
    with context:
        for name, module in list(sys.modules.items()):
            if name.startswith("_tfdoctor_agent.") and hasattr(module, "LEAST_S"):
                module.LEAST_S = 60.0  # on a busy machine a profiler may cost a short run as much
        runpy.run_path(script, run_name="__main__")
"""


Programs = Mapping[str, tuple[Sequence[object], Mapping[str, object] | None]]
"""Where each program is recorded, its words, and the plan; one without a plan runs without being recorded."""


def together(folder: Path, programs: Programs) -> dict[str, Run]:
    """Record programs one after the other in one process, in which TensorFlow starts once."""
    given = {
        out: ([str(word) for word in words], plan and {"sample_every_ms": 0, **plan})
        for out, (words, plan) in programs.items()
    }
    words, env = [sys.executable, "-c", TOGETHER, json.dumps(given)], environment(PYTHONPATH=str(SOURCES))
    done = ended(words, folder, env=env, timeout_s=1200)
    assert done.returncode == 0, done.stderr
    return {out: Run(0, done.stdout, done.stderr, folder / out) for out in programs}


def line_of(script: Path, text: str) -> list[object]:
    """Return the place of the one line of a script with this text, as recordings have it."""
    lines = script.read_text().splitlines()
    (number,) = (number for number, line in enumerate(lines, 1) if text in line)
    return [str(script), number]


def training(folder: Path) -> Path:
    """Return a script that takes 40 steps of a small loop over a dataset, and says so."""
    path = folder / "train.py"
    path.write_text(TRAINING)
    return path


TRAINING = """
import sys

def main(steps=40):
    import tensorflow as tf

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


def shell(words: list[str], out: Path, folder: Path, *, env: Mapping[str, str] | None = None, **plan: Any) -> Run:
    """Run a command under tfdoctor: `tfdoctor profile -- WORDS`."""
    given = {"kind": "command", "sample_every_ms": 0, **plan}
    done = ended(command(words[0], out, *words[1:], **given), folder, env=env)
    return Run(done.returncode, done.stdout, done.stderr, out)


def fake_tensorflow(folder: Path) -> None:
    """Put a package of that name where scripts of this folder find it: the hook comes in by it."""
    (folder / "tensorflow").mkdir()
    (folder / "tensorflow" / "__init__.py").write_text("__version__ = '2.0'\n")


def own_lines(stderr: str) -> str:
    """Return a run's stderr without the sentence that tfdoctor adds."""
    return "".join(line for line in stderr.splitlines(keepends=True) if not line.startswith("tfdoctor: "))
