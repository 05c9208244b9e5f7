"""``tfdoctor report report.json``: a stored report in any format, in the design of this version."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tfdoctor.cli.gates import Gates
from tfdoctor.cli.options import FailOn
from tfdoctor.cli.outcome import Output, exit_code, write
from tfdoctor.cli.patching import check_target, write_patch
from tfdoctor.cli.rule_selection import book, failing

if TYPE_CHECKING:
    from tfdoctor.rulebook.config import Config

STORED = ("report.json", "report.json.gz")
"""Names of reports beside which others have their usual names."""


def must_need_no_recording(options: Mapping[str, object]) -> None:
    """Check that none of these options is given, which only a recording can be examined by.

    Raises:
        typer.BadParameter: one is.
    """
    given = next((name for name, value in options.items() if value), None)
    if given is not None:
        raise typer.BadParameter(
            f"{given} needs the recording: a stored report is not examined again"
        )


def report_again(
    path: Path,
    chosen: "Config",
    output: Output,
    *,
    out: Path | None,
    fail_on: FailOn | None,
    patch: str | None,
) -> int:
    """Write a stored report in these formats and return the exit code; budgets are those of the settings, if any.

    Raises:
        InputError: it is no report.
        OutputError: the folder or the patch cannot be written.
    """
    from tfdoctor.stored.files import open_report  # noqa: PLC0415 - keeps --help fast

    diagnosis = open_report(path, book(chosen).known)
    gates = Gates(failing(fail_on, chosen), chosen.budget)
    if patch and patch != "-":
        check_target(Path(patch))
    diagnosis = gates.applied(diagnosis) if gates.budget.limits else diagnosis
    prefix = "" if path.name in STORED else f"{path.name.partition('.')[0]}-"
    folder = out or path.parent
    kept = [name for name in output.formats if folder / f"{prefix}report.{name}" != path]
    write(diagnosis, folder, replace(output, formats=kept), prefix)
    if patch is not None:
        write_patch(diagnosis, diagnosis.patch, patch)
    return exit_code(diagnosis, gates.fail_on)
