"""``--patch``: the changes that tfdoctor can apply by itself, as one diff."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tfdoctor.cli.streams import say
from tfdoctor.terms import text
from tfdoctor.terms.errors import OutputError
from tfdoctor.terms.replacement import replace_file, unwritten, why_unwritable
from tfdoctor.terms.verdict import Finding

if TYPE_CHECKING:
    from tfdoctor.diagnosis import Diagnosis

PATCHES = (b"--- ", b"diff --git ")  # Start of a file that may be overwritten


def write_patch(diagnosis: "Diagnosis", patch: bytes, target: str) -> None:
    """Write the patch of a diagnosis to a file, or to stdout for "-"; list the changes that it lacks, with reasons.

    A patch without changes is not written: a file that exists stays as it is, and a message says so.

    Raises:
        OutputError: the file cannot be written, or has content other than a patch; a patch on stdout would command
            the terminal or the CI runner that shows it.
    """
    if not target:
        raise OutputError("--patch needs a file name, or - for standard output.")
    for result in diagnosis.results:
        remedies = result.outcome.remedies if isinstance(result.outcome, Finding) else ()
        for remedy, edit in zip(remedies, result.edits, strict=False):
            if edit.missing:
                say(f"not in the patch: {text.prose(f'{result.rule.name}, {remedy.action!r}: {edit.missing}')}")
    if not patch:
        not_written("no change can be applied automatically", target)
    elif target == "-":
        shown = patch.decode(errors="replace")
        if text.harmless(shown) != shown:  # a stored report brings the patch of whoever wrote it
            raise OutputError(
                "The patch has characters that command a terminal or a CI runner: write it to a file with --patch "
                "FILE."
            )
        sys.stdout.flush()
        sys.stdout.buffer.write(patch)
        sys.stdout.buffer.flush()
    else:
        write_file(Path(target), patch)


def not_written(why: str, target: str) -> None:
    """Say why there is no patch to write, and that a file of its name stays as it is."""
    kept = target != "-" and Path(target).exists()
    say(f"no patch was written: {why}{f'; {target} stays as it is' if kept else ''}")


def check_target(path: Path) -> None:
    """Check that a file may be written as a patch.

    Raises:
        OutputError: it has content other than a patch, or cannot be read.
    """
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
    check_target(path)
    try:
        replace_file(path, patch, named=True)
    except OSError as error:
        raise _unwritable(path, error) from error
    typer.echo(f"wrote {path}: apply it with `git apply` in {folder or 'the folder of the run'}", err=True)


def _unwritable(path: Path, error: OSError) -> OutputError:
    return OutputError(unwritten(path, error, "choose another file for the patch"))
