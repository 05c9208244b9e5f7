"""Traces running jobs that have started TensorFlow's profiler server.

tfdoctor runs no code in such a job: its profiler server records the trace and sends it. One client process
per worker asks, all at the same moment, so that an unreachable worker does not affect the others.
"""

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from tfdoctor.capture.attach.address import Address
from tfdoctor.capture.attach.assemble import assemble
from tfdoctor.capture.attach.client import Answer, ask
from tfdoctor.capture.folder import new_run
from tfdoctor.recording import Recording
from tfdoctor.terms.errors import CaptureError, NotEmptyError, OutputError
from tfdoctor.terms.progress_line import line
from tfdoctor.terms.replacement import unwritten

__all__ = ["LONGEST_S", "Address", "attach"]

LONGEST_S = 300.0  # A job keeps every event in its memory until the trace ends; minutes of them are gigabytes
SHORTEST_S = 0.001  # The profiler counts in milliseconds


@dataclass(frozen=True, slots=True)
class _Request:
    """The checked addresses, duration and folder of a trace."""

    addresses: tuple[Address, ...]
    seconds: float
    out: Path
    made: bool  # for this trace


def attach(text: str, seconds: float, out: Path | None = None, *, stderr: TextIO | None = None) -> Recording:
    """Trace running jobs for so many seconds: `text` is `host:port`, several with commas.

    Workers that gave no trace are named in the recording, with the reason.

    Raises:
        CaptureError: an address or the time is invalid, or no worker answered; nothing was written.
        OutputError: the recording cannot be written where it should be.
    """
    stderr = stderr or sys.stderr
    request = _checked(text, seconds, out)
    answers = _record(request, stderr)
    for sentence in _sentences(request, answers):
        print(f"tfdoctor: {sentence}", file=stderr)
    return Recording.open(request.out)


def _checked(text: str, seconds: float, out: Path | None) -> _Request:
    """Return what is asked for, if it can be done; a recording is never overwritten."""
    addresses = Address.parse_all(text)
    if not SHORTEST_S <= seconds <= LONGEST_S:
        raise CaptureError(
            f"--for must be 1ms to {LONGEST_S / 60:.0f}m, since the job keeps the whole trace in memory."
        )
    if out is None:
        try:
            return _Request(addresses, seconds, new_run("attach"), made=True)
        except OSError as error:
            raise OutputError(unwritten("runs", error, "choose another folder with --out")) from error
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise NotEmptyError(f"{out} is not empty: choose another folder with --out, or remove it first.")
    return _Request(addresses, seconds, out, made=not out.exists())


def _record(request: _Request, stderr: TextIO) -> tuple[Answer, ...]:
    """Trace the jobs and write the recording; return the answer of each worker."""
    out = request.out
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".attach-", dir=out) as private:
            answers = _answers(request, Path(private), stderr)
            assemble(out, answers, request.seconds)
    except OSError as error:
        raise OutputError(unwritten(out, error, "choose another folder with --out")) from error
    finally:
        if request.made and out.is_dir() and not any(out.iterdir()):  # the recording never began
            out.rmdir()
    return answers


def _answers(request: _Request, private: Path, stderr: TextIO) -> tuple[Answer, ...]:
    names = ", ".join(map(str, request.addresses))
    with line(f"tracing {names} for {request.seconds:g} s …", stderr):
        answers = ask(request.addresses, private, request.seconds)
    if not any(answer.reached for answer in answers):
        reasons = "; ".join(f"{answer.address}: {answer.why}" for answer in answers)
        raise CaptureError(f"No job could be traced: {reasons}.")
    return answers


def _sentences(request: _Request, answers: tuple[Answer, ...]) -> list[str]:
    """Return the sentences for the terminal: what was traced, and each worker that was not."""
    traced = [answer for answer in answers if answer.trace is not None]
    subject = f"{len(traced)} of {len(answers)} workers"
    if len(answers) == 1 or not traced:
        subject = str(answers[0].address) if traced else "nothing"
    summary = f"traced {subject} for {request.seconds:g} s, recorded in {request.out}"
    return [summary, *(f"{a.address} was not traced: {a.why}" for a in answers if a.trace is None)]
