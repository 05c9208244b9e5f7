"""``tfdoctor check``: what can be recorded here, and what is missing."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tfdoctor.terms.errors import TfdoctorError

if TYPE_CHECKING:
    from tfdoctor.capture.readiness import Ability


def check(
    python: Annotated[
        str | None, typer.Option(help="Python interpreter of the script [default: that of `tfdoctor profile`].")
    ] = None,
) -> None:
    """Say what a recording on this machine would contain, and what would be missing.

    Nothing is run and nothing is written. The exit code is 2 if nothing could be recorded.
    """
    found = list(_all(python))
    width = max(len(ability.name) for ability in found)
    for ability in found:
        remedy = f": {ability.remedy}" if ability.remedy else ""
        state = {None: "none", True: "ok", False: "missing"}[ability.works]
        typer.echo(f"{state:<8}{ability.name:<{width}}  {ability.what}{remedy}")
    if any(ability.needed and not ability.works for ability in found):
        raise typer.Exit(TfdoctorError.exit_code)


def _all(python: str | None) -> Iterator["Ability"]:
    from tfdoctor.capture.readiness import Ability, abilities  # noqa: PLC0415 - keeps --help fast
    from tfdoctor.trial.running import layer_possible  # noqa: PLC0415 - same

    yield from abilities(python)
    why = layer_possible(Path.cwd())
    remedy = "`tfdoctor try` asks before it runs the program, whose files stay written"
    yield Ability(
        "tfdoctor try",
        works=not why,
        what=why or "writes of its runs are thrown away",
        remedy=remedy if why else "",
    )
    git = shutil.which("git")
    missing = "git was not found, so `tfdoctor try --patch` has nothing to apply a patch with"
    yield Ability("git", works=git is not None, what=git or missing)
