"""What commands say beside their output."""

import sys
from typing import TextIO

import typer

from tfdoctor.terms.text import Drawn


def say(text: str) -> None:
    """Print a message on the standard error, after the name of the program."""
    typer.echo(f"tfdoctor: {text}", err=True)


def draw(text: str, stream: TextIO | None = None) -> None:
    """Print what was rendered with colors, or with commands to a runner; names in it are harmless."""
    stream = stream or sys.stdout
    stream.write(Drawn(f"{text}\n"))
    stream.flush()
