"""``tfdoctor mcp``: recordings for assistants."""

from pathlib import Path
from typing import Annotated

import typer

from tfdoctor.terms.errors import InputError


def mcp(
    *,
    folders: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FOLDER]...",
            help="Folders whose recordings are served; nothing else is read [default: the current folder].",
        ),
    ] = None,
    allow_run: Annotated[
        bool, typer.Option("--allow-run", help="Also let clients run scripts of these folders, by profile and try.")
    ] = False,
) -> None:
    """Serve recordings to an assistant by the Model Context Protocol, on the standard input and output."""
    try:
        from tfdoctor.mcp.server import serve  # noqa: PLC0415 - keeps --help fast, and is an extra
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("mcp"):
            raise
        raise InputError("`tfdoctor mcp` needs the package mcp: pip install 'tfdoctor[mcp]'.") from error
    serve(tuple(folders or [Path()]), allow_run=allow_run)
