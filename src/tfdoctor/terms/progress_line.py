"""One line on a terminal that says what tfdoctor does; it is removed before anything else is printed."""

import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TextIO

from tfdoctor.terms.text import Drawn, name

LATE_S = 2.0  # Who has waited for so long wants to know for what
UNSIZED = 80  # Assumed columns of a terminal that does not report its width


@contextmanager
def late_line(text: str, stderr: TextIO, *, quiet: bool = False) -> Iterator[None]:
    """Show a line on a terminal once the `with` block has lasted LATE_S, and remove it at the block's end."""
    if quiet or not stderr.isatty():
        yield
        return
    with ExitStack() as shown:
        timer = threading.Timer(LATE_S, lambda: shown.enter_context(line(text, stderr)))
        timer.daemon = True  # a second Ctrl-C does not wait for it
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()  # it may be showing the line


@contextmanager
def line(text: str, stderr: TextIO, *, quiet: bool = False) -> Iterator[None]:
    """Show a line on a terminal during the `with` block, then remove it: of one row, because no more can be."""
    shown = not quiet and stderr.isatty()
    if shown:
        columns = os.get_terminal_size(stderr.fileno()).columns or UNSIZED
        stderr.write(Drawn(f"\r\x1b[K{name(f'tfdoctor: {text}', columns - 1)}"))
        stderr.flush()
    try:
        yield
    finally:
        if shown:
            stderr.write(Drawn("\r\x1b[K"))
            stderr.flush()
