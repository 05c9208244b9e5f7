"""Runs the command line in the process of the tests, where nothing depends on a process of its own."""

import contextlib
import io
import subprocess
import sys
from unittest import mock

from tfdoctor import cli


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
