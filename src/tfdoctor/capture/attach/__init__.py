"""Traces running jobs that have started TensorFlow's profiler server.

Nothing of ours is in such a job: its profiler server takes the trace and sends it. One client process a
worker asks, all at the same moment, so that a worker that cannot be reached costs the others nothing.
"""

import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from tfdoctor.capture.attach.address import Address
from tfdoctor.capture.attach.assemble import assemble
from tfdoctor.capture.attach.client import Answer, ask
from tfdoctor.capture.progress import line
from tfdoctor.errors import CaptureError, NotEmptyError, OutputError
from tfdoctor.recording import Recording

__all__ = ["LONGEST_S", "Address", "attach"]

LONGEST_S = 300.0
"""A job keeps every event in its memory until the trace ends; minutes of them are gigabytes."""

SHORTEST_S = 0.001
"""The profiler counts in milliseconds."""


@dataclass(frozen=True, slots=True)
class _Window:
    """What to trace, once everything about it has been checked."""

    addresses: tuple[Address, ...]
    seconds: float
    out: Path


def attach(
    text: str, seconds: float, out: Path | None = None, *, stderr: TextIO | None = None
) -> Recording:
    """Trace running jobs for so many seconds: `text` is `host:port`, several with commas.

    Workers that gave no trace are named in the recording, with the reason.

    Raises:
        CaptureError: an address or the time cannot be meant, or no worker answered: nothing is left.
        OutputError: the recording cannot be written where it should be.
    """
    stderr = stderr or sys.stderr
    wanted = _Window(Address.parse_all(text), _checked(seconds), _place(out))
    existed = wanted.out.is_dir()
    try:
        wanted.out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".attach-", dir=wanted.out) as private:
            answers = _answers(wanted, Path(private), stderr)
            assemble(wanted.out, answers, wanted.seconds)
    except OSError as error:
        raise OutputError(
            f"{wanted.out} cannot be written ({error.strerror}): choose another folder with --out."
        ) from error
    finally:
        _drop_empty(wanted.out, existed=existed)
    for sentence in _sentences(wanted, answers):
        print(f"tfdoctor: {sentence}", file=stderr)
    return Recording.open(wanted.out)


def _checked(seconds: float) -> float:
    if not SHORTEST_S <= seconds <= LONGEST_S:
        raise CaptureError(
            f"--for must be 1ms to {LONGEST_S / 60:.0f}m, since the job keeps the whole trace in memory."
        )
    return seconds


def _place(out: Path | None) -> Path:
    """Return where to record; a recording is never overwritten."""
    out = out or Path("runs", f"attach-{time.strftime('%Y%m%d-%H%M%S')}")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise NotEmptyError(
            f"{out} is not empty: choose another folder with --out, or remove it first."
        )
    return out


def _answers(wanted: _Window, private: Path, stderr: TextIO) -> tuple[Answer, ...]:
    names = ", ".join(map(str, wanted.addresses))
    with line(f"tracing {names} for {wanted.seconds:g} s …", stderr):
        answers = ask(wanted.addresses, private, wanted.seconds)
    if not any(answer.reached for answer in answers):
        reasons = "; ".join(f"{answer.address}: {answer.why}" for answer in answers)
        raise CaptureError(f"No job could be traced: {reasons}.")
    return answers


def _drop_empty(out: Path, *, existed: bool) -> None:
    """Remove the folder that we made for a recording that never began."""
    if not existed and out.is_dir() and not any(out.iterdir()):
        out.rmdir()


def _sentences(wanted: _Window, answers: tuple[Answer, ...]) -> list[str]:
    """Return what to say on the terminal: what was traced, and each worker that was not."""
    traced = [answer for answer in answers if answer.trace is not None]
    said = f"{len(traced)} of {len(answers)} workers"
    if len(answers) == 1 or not traced:
        said = str(answers[0].address) if traced else "nothing"
    took = f"traced {said} for {wanted.seconds:g} s, recorded in {wanted.out}"
    return [took, *(f"{a.address} was not traced: {a.why}" for a in answers if a.trace is None)]
