"""Standard streams that take everything: closed ones, readers that leave, and encodings without our characters.

`tfdoctor report ... | head` writes the same files and ends with the same code, as does `tfdoctor profile ... >&-`.
"""

import codecs
import errno
import io
import os
import sys
from collections.abc import Callable
from typing import Any, TextIO

import typer

from tfdoctor.terms.text import Drawn, harmless

# Errors of a stream that nobody reads any more: of a pipe, of a terminal, and of one that was closed.
GONE = (errno.EPIPE, errno.EIO, errno.EBADF)


class Unread:
    """A stream that drops what is written after its reader has left, or at any error if it may be `lost`."""

    def __init__(self, stream: Any, *, lost: bool) -> None:  # noqa: ANN401 - of text or of bytes
        self._stream, self._lost = stream, lost

    @property
    def buffer(self) -> "Unread":
        """The stream of bytes below."""
        return Unread(self._stream.buffer, lost=self._lost)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the stream has
        return getattr(self._stream, name)

    @property
    def encoding(self) -> str | None:
        """That of the stream; click would write UTF-8 to one that calls itself ASCII."""
        name: str | None = self._stream.encoding
        return "latin-1" if name and codecs.lookup(name).name == "ascii" else name

    def write(self, text: str | bytes) -> int:
        """Write a text, harmless whatever names are in it, or bytes; return the length.

        Raises:
            OSError: it cannot be written, as to a full disk; the rest is dropped.
        """
        self._attempt(self._stream.write, text if isinstance(text, bytes | Drawn) else harmless(text))
        return len(text)

    def flush(self) -> None:
        """Write what is buffered, as above."""
        self._attempt(self._stream.flush)

    def _attempt(self, act: Callable[..., object], *given: str | bytes) -> None:
        """Do something; where it fails, send the rest nowhere, for programs that this one starts too."""
        try:
            act(*given)
        except OSError as error:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)
            self._stream.flush()
            if error.errno not in GONE and not self._lost:
                raise


def prepare() -> None:
    """Let a command finish whatever becomes of its streams."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:  # closed: the next file would have its number; the script finds it closed all the same
            os.open(os.devnull, os.O_RDWR)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "w" if number else "r", encoding="utf-8"))  # noqa: PTH123, SIM115 - no path
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    sys.stdout = Unread(sys.stdout, lost=False)
    sys.stderr = Unread(sys.stderr, lost=True)


def say(text: str) -> None:
    """Print a message on the standard error, after the name of the program."""
    typer.echo(f"tfdoctor: {text}", err=True)


def draw(text: str, stream: TextIO | None = None) -> None:
    """Print what was rendered with colors, or with commands to a runner; names in it are harmless."""
    stream = stream or sys.stdout
    stream.write(Drawn(f"{text}\n"))
    stream.flush()
