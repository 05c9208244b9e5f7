"""Asks xprof for a second opinion, in a child process, because a malformed trace can abort it.

The child repairs the trace and writes it to a private folder first: xprof writes its cache next to its input and
does not check whether the cache belongs to it.
"""

import html
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from enum import StrEnum
from pathlib import Path
from typing import IO, Any, Self

from tfdoctor import own_python
from tfdoctor.terms.record import Record

LARGEST_BYTES = 32_000_000  # Of a trace: xprof reads 10 to 16 MB per second, with twenty times the memory
BYTES_PER_BYTE = 40  # Limit of xprof's address space per byte of trace; it needs about 20 times the file
BASE_BYTES = 4_000_000_000  # Limit of the address space for xprof's library and threads

CHILD = Path(__file__).with_name("xprof_child.py")

TIMEOUT_S = 120.0  # xprof reads 10 to 16 MB of trace per second; a longer wait is not worth its opinion
WAIT_INPUT, HOST_TO_DEVICE = "110", "80"  # xprof's event types that count as input (steps_db.proto), as JSON keys
Answer = Mapping[str, Any]  # The output of the child: {"tables": the tool's tables, "steps": OpStats' steps in ps}


class InputVerdict(StrEnum):
    """xprof's conclusion about input, by the phrase that identifies it."""

    BOUND = "HIGHLY input-bound"
    PARTLY_BOUND = "MODERATELY input-bound"
    POTENTIAL = "POTENTIALLY input-bound"
    NOT_BOUND = "NOT input-bound"
    NONE = ""  # part of every text, so the last to compare

    @classmethod
    def of(cls, conclusion: str) -> "InputVerdict":
        """Return the verdict in xprof's conclusion."""
        return next(verdict for verdict in cls if verdict in conclusion)


class Opinion(Record):
    """xprof's opinion on a trace; ``error`` says why there is none."""

    conclusion: str = ""
    verdict: InputVerdict = InputVerdict.NONE
    input_percent: float | None = None  # of the step
    steps: int = 0
    step_ms: float | None = None
    error: str = ""


class Asked:
    """A question to xprof, on which a child works until its answer is taken or the block is left.

    It needs a second for a few megabytes, so it is asked before anything else is done with the trace.
    """

    def __init__(self, path: Path, *, timeout_s: float = TIMEOUT_S) -> None:
        self._timeout_s, self._ends = timeout_s, time.monotonic() + timeout_s
        self._open = ExitStack()
        self._process: subprocess.Popen[bytes] | None = None
        self._error = ""
        try:
            size, most = path.stat().st_size, LARGEST_BYTES // 10**6
            if size > LARGEST_BYTES:
                self._error = f"it is asked for traces of up to {most} MB, and this one has {size / 1e6:.0f} MB"
            else:
                self._start(path, BASE_BYTES + BYTES_PER_BYTE * size)
        except OSError as error:  # no trace, no room for the copy, no child
            self._error = str(error)

    def _start(self, path: Path, limit: int) -> None:
        private = self._open.enter_context(tempfile.TemporaryDirectory(prefix="tfdoctor-"))
        # It writes to files, because nobody reads a pipe meanwhile.
        self._output = self._open.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - closed as the question is
        self._errors = self._open.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - same
        self._process = subprocess.Popen(  # noqa: S603 - our own child
            [sys.executable, "-P", str(CHILD), str(path), private, str(limit)],  # -P: here is an xprof.py too
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=self._errors,
            env=own_python.own(os.environ),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()  # nothing, where it has ended
            self._process.wait()
        self._open.close()

    def opinion(self) -> Opinion:
        """Wait for the answer; do not raise for a damaged trace."""
        if self._process is None:
            return Opinion(error=self._error)
        try:
            code = self._process.wait(max(self._ends - time.monotonic(), 0))
        except subprocess.TimeoutExpired:
            return Opinion(error=f"no answer within {self._timeout_s:.0f} s")
        text = _text(self._output)
        if code and not text:
            said = _text(self._errors).strip().splitlines() or ["it failed without a message"]
            return Opinion(error=f"it was killed by signal {-code}" if code < 0 else said[-1])
        try:
            answer = json.loads(text)
        except ValueError:
            return Opinion(error="its answer cannot be read")
        return opinion(answer) if isinstance(answer, dict) else Opinion(error="its answer is of an unknown kind")


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def opinion(answer: Answer) -> Opinion:
    """Return the opinion in an answer."""
    tables, steps = answer["tables"], answer["steps"]
    facts = tables[1].get("p", {}) if len(tables) > 1 else {}  # of the step table
    percent = None
    if steps and "infeed_percent_average" in facts:  # a TPU's
        with suppress(ValueError):
            percent = float(str(facts["infeed_percent_average"]).rstrip("%"))
    elif total := sum(step["duration_ps"] for step in steps):
        waited = sum(step["parts_ps"].get(kind, 0) for step in steps for kind in (WAIT_INPUT, HOST_TO_DEVICE))
        percent = 100 * waited / total
    conclusion = html.unescape(re.sub(r"<[^<>]*>", "", str(facts.get("input_conclusion", "")))).strip()
    step_ms = statistics.fmean(step["duration_ps"] for step in steps) / 1e9 if steps else None
    return Opinion(conclusion, InputVerdict.of(conclusion), percent, len(steps), step_ms)
