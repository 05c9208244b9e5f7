"""What tests of the command line are written with: ``from tests.cli.kit import *``."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.capture.running import SOURCES, environment
from tests.command import tfdoctor

SAMPLES = Path(__file__).parents[2] / "sample_traces"
SLOW, FIXED = SAMPLES / "cpu-input-bound", SAMPLES / "cpu-input-bound-fixed"
CONVNET = SAMPLES / "cpu-float32-convnet"


def run(*words: object) -> tuple[int, str]:
    """Run `tfdoctor WORDS`; return its exit code, and its words without our name before an error."""
    done = tfdoctor(*map(str, words))
    return done.returncode, " ".join((done.stdout + done.stderr.removeprefix("tfdoctor: ")).split())


# A recording that can be run again, made of a sample's trace and a script that does not train

SCRIPT = """from pathlib import Path

with Path("ran.txt").open("a") as file:
    file.write("ran\\n")
"""


def made(folder: Path, **changes: Any) -> Path:
    """Return the recording of `train.py` in a folder, which notes in `ran.txt` that it ran."""
    script = folder / "train.py"
    script.write_text(SCRIPT)
    out = folder / "recording"
    shutil.copytree(CONVNET, out)
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
    """Return a digest of every file below a folder."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


__all__ = [
    "CONVNET", "FIXED", "SAMPLES", "SLOW", "SOURCES", "Any", "Path", "content", "environment", "json", "made", "os",
    "pytest", "replace", "run", "shutil", "subprocess", "sys", "tfdoctor",
]  # fmt: skip
