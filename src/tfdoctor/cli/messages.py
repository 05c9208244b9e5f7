"""What commands say beside their output."""

import typer


def say(text: str) -> None:
    """Print a message on the standard error, after the name of the program."""
    typer.echo(f"tfdoctor: {text}", err=True)
