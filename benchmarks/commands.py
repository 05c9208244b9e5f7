"""Runs the commands that benchmarks measure, without GPUs and without TensorFlow's log."""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

QUIET = {"CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"}

TFDOCTOR = (sys.executable, "-m", "tfdoctor")

Variables = Mapping[str, str] | None
"""Of the environment, beside those that all commands have."""


class FailedError(SystemExit):
    """A command failed: its last lines. It ends a benchmark that does not expect it."""


def ended(
    *command: str | Path,
    folder: Path | None = None,
    limit_s: float | None = None,
    variables: Variables = None,
    read: bool = True,
) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end, whatever its exit code is; without `read`, what it prints is lost.

    Of a command that leaves processes behind, nothing should be read: they hold the pipe open.

    Raises:
        subprocess.TimeoutExpired: it did not end in time.
    """
    stream = subprocess.PIPE if read else subprocess.DEVNULL
    return subprocess.run(
        command,
        stdout=stream, stderr=stream, text=True, errors="replace", check=False,
        cwd=folder, timeout=limit_s, env={**os.environ, **QUIET, **(variables or {})},
    )  # fmt: skip


def output(*command: str | Path, folder: Path | None = None, variables: Variables = None) -> str:
    """Run a command and return what it printed.

    Raises:
        FailedError: its exit code was not 0.
    """
    done = ended(*command, folder=folder, variables=variables)
    if done.returncode:
        words = " ".join(map(str, command))
        raise FailedError(f"{words}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    return done.stdout


def report(out: Path) -> dict[str, Any]:
    """Return the JSON report in a recording, whose fields docs/reference/json.md lists; {} where there is none."""
    file = out / "report.json"
    read: dict[str, Any] = json.loads(file.read_text("utf-8")) if file.is_file() else {}
    return read


def parser(doc: str | None) -> argparse.ArgumentParser:
    """Return the parser of a benchmark's command line, described by its docstring."""
    as_written = argparse.RawDescriptionHelpFormatter
    return argparse.ArgumentParser(description=doc, formatter_class=as_written)
