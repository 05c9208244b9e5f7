"""Shows the progress of a run on a terminal, and nowhere else.

While the script runs, a line of ours would break its progress bar, so the terminal's title says "warm-up",
"recording" and "recorded". After the script, one line on stderr says what tfdoctor does; it is removed
before anything else is printed.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Self, TextIO

from tfdoctor.recording import AGENT
from tfdoctor.recording.agent import AgentState
from tfdoctor.recording.files import agent_state
from tfdoctor.recording.notes import Notes
from tfdoctor.terms.text import Drawn, name

UPDATE_S = 0.5

LATE_S = 2.0  # Who has waited for so long wants to know for what
UNSIZED = 80  # Assumed columns of a terminal that does not report its width
# Terminals that have a title; others would print its text on the screen.
TITLED = (*("xterm", "screen", "tmux", "rxvt", "alacritty"), *("foot", "kitty", "gnome", "konsole", "vte"))

RECORDING = "recording"

PUSH, POP = "\x1b[22;2t", "\x1b[23;2t"  # Push and pop the title, as in xterm


class Title:
    """Shows the state of the most advanced process in the terminal's title while the script runs."""

    def __init__(self, processes: Path, stderr: TextIO, *, quiet: bool, traces: bool = True) -> None:
        self.processes, self.stderr, self.traces = processes, stderr, traces
        known = os.environ.get("TERM", "").startswith(TITLED)
        self.shown = known and not quiet and stderr.isatty()
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._run, name="progress", daemon=True)

    def __enter__(self) -> Self:
        if self.shown:
            self._write(PUSH)
            self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.shown:
            self.over.set()
            self.thread.join()
            self._write(POP)

    def _run(self) -> None:
        shown = ""
        while not self.over.wait(UPDATE_S):
            words = state(self.processes) if self.traces else RECORDING
            if words and words != shown:
                self._write(f"\x1b]2;tfdoctor: {words}\a")
                shown = words

    def _write(self, text: str) -> None:
        try:
            self.stderr.write(Drawn(text))
            self.stderr.flush()
        except OSError:  # the terminal was closed
            self.over.set()


def state(processes: Path) -> str:
    """Return the state of the run from its agents' files; "" until a process imports TensorFlow."""
    agents = [_read(path) for path in sorted(processes.glob(f"*/{AGENT}"))]
    states = {agent.state for agent in agents}
    if states & {"open", "sampling"}:
        return RECORDING
    if "done" in states:
        return "recorded"
    return "warm-up" if any(agent.wanted for agent in agents) else ""


def _read(path: Path) -> AgentState:
    try:
        return agent_state(path, Notes()) or AgentState()
    except OSError:
        return AgentState()


def fresh_line(stderr: TextIO) -> None:
    """Move to the start of a line on a terminal: the script may have left a line unfinished.

    As many spaces as columns wrap to the next line, unless the cursor was at the start of one: a terminal wraps
    only when it prints one more character. The text before the cursor is not overwritten.
    """
    if stderr.isatty():
        columns = os.get_terminal_size(stderr.fileno()).columns or UNSIZED
        stderr.write(Drawn(" " * columns + "\r"))


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
