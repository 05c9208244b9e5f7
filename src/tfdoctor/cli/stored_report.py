"""``tfdoctor report report.json``: a stored report in any format, in the design of this version."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tfdoctor.cli.gates import GateOptions
from tfdoctor.cli.messages import say
from tfdoctor.cli.outcome import Output, exit_code, write
from tfdoctor.cli.patching import check_target, write_patch
from tfdoctor.cli.rule_selection import book

if TYPE_CHECKING:
    from tfdoctor.rulebook.config import Config


def must_need_no_recording(options: Mapping[str, object]) -> None:
    """Check that none of these options is given, which only a recording can be examined by.

    Raises:
        typer.BadParameter: one is.
    """
    given = next(
        (name for name, value in options.items() if value or isinstance(value, float)), None
    )  # a price of 0 is one
    if given is not None:
        why = (
            "a stored report does not say which of its words are names"
            if given == "--scrub"
            else "a stored report is not examined again"
        )
        raise typer.BadParameter(f"{given} needs the recording: {why}; run `tfdoctor report RECORDING {given}`")


def report_again(
    path: Path, chosen: "Config", output: Output, demands: GateOptions, *, out: Path | None, patch: str | None
) -> int:
    """Write a stored report in these formats and return the exit code; budgets are those of the settings, if any.

    Raises:
        InputError: it is no report, or the baseline cannot be read, or is that of another program.
        OutputError: the folder, the patch or the baseline cannot be written.
    """
    from tfdoctor.compare.baseline import program_of_report  # noqa: PLC0415 - keeps --help fast
    from tfdoctor.stored.files import NAMES, open_report  # noqa: PLC0415 - keeps --help fast

    diagnosis = open_report(path, book(chosen).known)
    program, gates = program_of_report(diagnosis), demands.gates(chosen)
    gates.check(program)
    if patch and patch != "-":
        check_target(Path(patch))
    diagnosis = gates.applied(diagnosis)
    prefix = "" if out or path.name in NAMES else f"{path.name.partition('.')[0]}-"
    folder = out or path.parent
    kept = [name for name in output.formats if folder / f"{prefix}report.{name}" != path]
    if len(kept) < len(output.formats):
        say(f"{path} is the report that is read, and stays as it is: --out names another folder")
    write(diagnosis, folder, replace(output, formats=kept), prefix)
    if patch is not None:
        write_patch(diagnosis, diagnosis.patch, patch)
    gates.write(diagnosis, program)
    return exit_code(diagnosis, gates.fail_on)
