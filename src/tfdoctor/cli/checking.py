"""``tfdoctor check``: what can be recorded here; ``tfdoctor mcp``: recordings for assistants."""

import shutil
from pathlib import Path

import typer

from tfdoctor.cli.commands import CheckOptions, McpOptions
from tfdoctor.terms.errors import InputError, TfdoctorError


def check(given: CheckOptions) -> int:
    """Say what a recording on this machine would contain, and return the exit code."""
    from tfdoctor.capture.readiness import Ability, abilities  # noqa: PLC0415 - not for `mcp`
    from tfdoctor.trial.running import layer_possible  # noqa: PLC0415 - same

    stays, git = layer_possible(Path.cwd()), shutil.which("git")
    asks = "`tfdoctor try` asks before it runs the program, whose files stay written" if stays else ""
    thrown = stays or "writes of its runs are thrown away"
    missing = "git was not found, so `tfdoctor try --patch` has nothing to apply a patch with"
    everything = [
        *abilities(given.python),
        Ability("tfdoctor try", works=not stays, what=thrown, remedy=asks),
        Ability("git", works=git is not None, what=git or missing),
    ]
    width = max(len(ability.name) for ability in everything)
    for ability in everything:
        remedy = f": {ability.remedy}" if ability.remedy else ""
        state = {None: "none", True: "ok", False: "missing"}[ability.works]
        typer.echo(f"{state:<8}{ability.name:<{width}}  {ability.what}{remedy}")
    fails = any(ability.needed and not ability.works for ability in everything)
    return TfdoctorError.exit_code if fails else 0


def mcp(given: McpOptions) -> None:
    """Serve recordings until the client leaves."""
    try:
        from tfdoctor.mcp.server import serve  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("mcp"):
            raise
        raise InputError("`tfdoctor mcp` needs the package mcp: pip install 'tfdoctor[mcp]'.") from error
    serve(tuple(given.folders or [Path()]), allow_run=given.allow_run)
