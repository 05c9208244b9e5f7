"""``--patch``: the changes that can be made mechanically, as one diff."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tfdoctor.errors import OutputError

if TYPE_CHECKING:
    from tfdoctor.diagnosis import Diagnosis


def write_patch(diagnosis: "Diagnosis", target: str) -> None:
    """Write the patch to a file, or to stdout for "-"; say of each other change why it is not in it.

    A patch of no change is empty, so that none of an earlier report is taken for it.

    Raises:
        OutputError: the file cannot be written, or holds something else than a patch.
    """
    if not target:
        raise OutputError("--patch names no file: give one, or - for the standard output.")
    for line in _left_out(diagnosis):
        typer.echo(f"tfdoctor: not in the patch: {line}", err=True)
    if not diagnosis.patch:
        typer.echo("tfdoctor: the patch is empty: no change can be made mechanically", err=True)
    if target == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(diagnosis.patch)
        sys.stdout.buffer.flush()
    else:
        _write(Path(target), diagnosis.patch)


PATCHES = (b"--- ", b"diff --git ")
"""How a file begins that may be overwritten."""


def _write(path: Path, patch: bytes) -> None:
    try:
        there = path.read_bytes() if path.exists() else b""
        if there and not there.startswith(PATCHES):
            raise OutputError(f"{path} is there and is no patch: choose another file for --patch.")
        path.write_bytes(patch)
    except OSError as error:
        raise OutputError(
            f"{path} cannot be written ({error.strerror}): choose another file for --patch."
        ) from error
    how = "`git apply` takes it in the folder the run was started in" if patch else "an empty file"
    typer.echo(f"wrote {path}: {how}", err=True)


def _left_out(diagnosis: "Diagnosis") -> list[str]:
    """Return the changes that are not in the patch, each with the reason."""
    from tfdoctor import text  # noqa: PLC0415 - keeps --help fast
    from tfdoctor.rule import Topic  # noqa: PLC0415 - same
    from tfdoctor.verdict import Finding  # noqa: PLC0415 - same

    return [
        text.prose(f"{result.rule.name}, {remedy.action!r}: {edit.missing}")
        for result in diagnosis.results
        if isinstance(result.outcome, Finding) and result.rule.topic is not Topic.RECORDING
        for remedy, edit in zip(result.outcome.remedies, result.edits, strict=False)
        if edit.missing
    ]
