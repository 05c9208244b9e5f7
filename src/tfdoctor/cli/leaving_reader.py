"""Output whose reader may leave: `tfdoctor report ... | head` writes the same files and ends with the same code."""

import os
import sys
from typing import Any, TextIO

from tfdoctor.terms.text import Drawn, harmless


class Unread:
    """A text stream that drops what is written after its reader has left."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the stream has
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write a text, harmless whatever names are in it; return its length."""
        try:
            return self._stream.write(text if isinstance(text, Drawn) else harmless(text))
        except BrokenPipeError:
            self._drop()
            return len(text)

    def flush(self) -> None:
        """Write what is buffered."""
        try:
            self._stream.flush()
        except BrokenPipeError:
            self._drop()

    def _drop(self) -> None:
        """Send the rest nowhere, for programs that this one starts too."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)
        self._stream.flush()


def tolerate_leaving_readers() -> None:
    """Let a command finish after the reader of its output has left."""
    sys.stdout, sys.stderr = Unread(sys.stdout), Unread(sys.stderr)
