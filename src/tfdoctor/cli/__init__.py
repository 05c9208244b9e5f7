"""The command line: parse, call, print; no logic. One module a command.

Heavy imports stay inside the commands, so that ``--help`` answers at once.
"""

import sys
from typing import Annotated

import typer

from tfdoctor import __version__
from tfdoctor.cli.attach import attach
from tfdoctor.cli.command_line import ProfileCommand
from tfdoctor.cli.options import FailOn
from tfdoctor.cli.profile import profile
from tfdoctor.cli.report import report
from tfdoctor.cli.reporting import FOUND, exit_code
from tfdoctor.errors import TfdoctorError

__all__ = ["FOUND", "FailOn", "app", "exit_code", "main"]

app = typer.Typer(
    name="tfdoctor",
    help="Say what slows a TensorFlow training run, on which line, and what changing it saves.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,
)


def main() -> None:
    """Run the command line; a fault the user can mend is one sentence and an exit code."""
    try:
        app(standalone_mode=True)
    except TfdoctorError as error:
        typer.echo(f"tfdoctor: {error}", err=True)
        sys.exit(error.exit_code)
    except OSError as error:  # a full disk behind the standard output, say
        typer.echo(f"tfdoctor: {error.filename or 'output'}: {error.strerror}.", err=True)
        sys.exit(TfdoctorError.exit_code)


def _version(*, wanted: bool) -> None:
    if wanted:
        typer.echo(f"tfdoctor {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Take the options that belong to no command."""


app.command(cls=ProfileCommand, context_settings={"allow_interspersed_args": False})(profile)
app.command()(attach)
app.command()(report)
