"""The command line: parse, call, print; no logic.

`commands` declares them; what does the work is imported when it is called, so that ``--help`` answers at once.
"""

import sys
from typing import Annotated, Any

import typer

from tfdoctor import __version__
from tfdoctor.cli import commands
from tfdoctor.cli.options import FOUND, INTERRUPTED, UNDECIDED, app
from tfdoctor.cli.streams import prepare, say
from tfdoctor.remote.uploads import UPLOADS
from tfdoctor.terms.errors import TfdoctorError
from tfdoctor.terms.limits import TOO_MUCH_MEMORY

__all__ = ["FOUND", "UNDECIDED", "app", "commands", "main"]

# The error typer raises for an invalid command line; its module differs between versions.
USAGE: type[Exception] = typer.BadParameter.__bases__[0]


def main() -> None:
    """Run the command line; an error the user can fix is one sentence and an exit code."""
    prepare()
    try:
        try:
            # Completion calls the program by this name; of ``python -m tfdoctor`` it would be a broken one.
            code: int = app(prog_name="tfdoctor", standalone_mode=False)
        finally:  # what was written for a URL is uploaded, even if the command failed later
            for uploaded in UPLOADS.finish():
                typer.echo(uploaded, err=True)
        sys.exit(code)
    except USAGE as error:
        typer.echo(_usage(error), err=True)
        sys.exit(TfdoctorError.exit_code)
    except typer.Abort:  # Ctrl-C, in older versions of typer
        sys.exit(INTERRUPTED)
    except TfdoctorError as error:
        from tfdoctor.remote.fetching import shown  # noqa: PLC0415 - keeps --help fast

        say(shown(str(error)))  # with a URL that the user knows in place of its copy
        sys.exit(error.exit_code)
    except MemoryError:
        say(TOO_MUCH_MEMORY)
        sys.exit(TfdoctorError.exit_code)
    except OSError as error:  # a full disk behind the standard output, say
        say(f"{error.filename or 'output'}: {error.strerror}.")
        sys.exit(TfdoctorError.exit_code)


def _usage(error: Any) -> str:  # noqa: ANN401  # as above
    """Return what is wrong with the command line, and where to find help."""
    message = str(error.format_message()).strip().rstrip(".")
    if not sys.argv[1:]:  # the message is the help itself
        return message
    own = ["tfdoctor", *(word for word in sys.argv[1:2] if not word.startswith("-"))]
    command = error.ctx.command_path if error.ctx else " ".join(own)
    return f"tfdoctor: {message[:1].lower()}{message[1:]} (see `{command} --help`)."


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
    """Handle options without a command."""
