"""Runs the command line in the process of the tests, where nothing depends on a process of its own."""

import contextlib
import io
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest import mock

from tfdoctor import cli


def ran_command(*command: str | Path, **options: Any) -> "subprocess.CompletedProcess[str]":
    """Run a command in a process of its own, this Python where it begins with an option; return what it did."""
    first = [sys.executable] if str(command[0]).startswith("-") else []
    check = options.pop("check", False)
    return subprocess.run([*first, *map(str, command)], capture_output=True, text=True, check=check, **options)


def tfdoctor(*words: str) -> "subprocess.CompletedProcess[str]":
    """Run `tfdoctor WORDS`; return its exit code and what it printed."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    command = ["tfdoctor", *words]
    try:
        with (
            mock.patch.object(sys, "argv", command),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            cli.main()
    except SystemExit as end:
        code = int(end.code or 0)
    return subprocess.CompletedProcess(command, code, out.getvalue(), err.getvalue())
