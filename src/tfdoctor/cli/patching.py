"""``--patch``: the changes that tfdoctor can apply by itself, as one diff."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tfdoctor.cli.messages import say
from tfdoctor.terms.errors import OutputError

if TYPE_CHECKING:
    from tfdoctor.diagnosis import Diagnosis


def write_patch(diagnosis: "Diagnosis", patch: bytes, target: str) -> None:
    """Write the patch of a diagnosis to a file, or to stdout for "-"; list the changes that it lacks, with reasons.

    A patch without changes is not written: a file that exists stays as it is, and a message says so.

    Raises:
        OutputError: the file cannot be written, or has content other than a patch; a patch on stdout would command
            the terminal or the CI runner that shows it.
    """
    if not target:
        raise OutputError("--patch needs a file name, or - for standard output.")
    for line in _left_out(diagnosis):
        say(f"not in the patch: {line}")
    if not patch:
        not_written("no change can be applied automatically", target)
    elif target == "-":
        _must_be_harmless(patch)
        sys.stdout.flush()
        sys.stdout.buffer.write(patch)
        sys.stdout.buffer.flush()
    else:
        write_file(Path(target), patch)


def _must_be_harmless(patch: bytes) -> None:
    """Check what is to be printed as it is: a stored report brings the patch of whoever wrote it."""
    from tfdoctor.terms.text import harmless  # noqa: PLC0415 - keeps --help fast

    shown = patch.decode(errors="replace")
    if harmless(shown) != shown:
        raise OutputError(
            "The patch has characters that command a terminal or a CI runner: write it to a file with --patch FILE."
        )


def not_written(why: str, target: str) -> None:
    """Say why there is no patch to write, and that a file of its name stays as it is."""
    kept = target != "-" and Path(target).exists()
    say(f"no patch was written: {why}{f'; {target} stays as it is' if kept else ''}")


PATCHES = (b"--- ", b"diff --git ")  # Start of a file that may be overwritten


def check_target(path: Path) -> None:
    """Check that a file may be written as a patch.

    Raises:
        OutputError: it has content other than a patch, or cannot be read.
    """
    from tfdoctor.terms.replacement import why_unwritable  # noqa: PLC0415 - keeps --help fast

    try:
        content = path.read_bytes() if path.exists() else b""
    except OSError as error:
        raise _unwritable(path, error) from error
    if not path.parent.is_dir():
        raise OutputError(f"{path.parent} is no folder: choose another file for the patch.")
    if why := why_unwritable(path if path.exists() else path.parent):
        raise OutputError(f"{path} cannot be written ({why}): choose another file for the patch.")
    if content and not content.startswith(PATCHES):
        raise OutputError(f"{path} exists and is not a patch: choose another file for the patch.")


def write_file(path: Path, patch: bytes, folder: str = "") -> None:
    """Write a patch to a file that is absent, or a patch; say the folder to apply it in, the run's by default.

    Raises:
        OutputError: it cannot be written.
    """
    from tfdoctor.terms.replacement import replace_file  # noqa: PLC0415 - keeps --help fast

    check_target(path)
    try:
        replace_file(path, patch, named=True)
    except OSError as error:
        raise _unwritable(path, error) from error
    where = folder or "the folder of the run"
    typer.echo(f"wrote {path}: apply it with `git apply` in {where}", err=True)


def _unwritable(path: Path, error: OSError) -> OutputError:
    from tfdoctor.terms.replacement import unwritten  # noqa: PLC0415 - keeps --help fast

    return OutputError(unwritten(path, error, "choose another file for the patch"))


def _left_out(diagnosis: "Diagnosis") -> list[str]:
    """Return the changes that are not in the patch, each with the reason."""
    from tfdoctor.terms import text  # noqa: PLC0415 - keeps --help fast
    from tfdoctor.terms.verdict import Finding  # noqa: PLC0415 - same

    return [
        text.prose(f"{result.rule.name}, {remedy.action!r}: {edit.missing}")
        for result in diagnosis.results
        if isinstance(result.outcome, Finding)
        for remedy, edit in zip(result.outcome.remedies, result.edits, strict=False)
        if edit.missing
    ]
