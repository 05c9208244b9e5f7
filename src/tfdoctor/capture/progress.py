"""How far the run is, for whoever looks at a terminal; nobody else gets to see it.

While the script runs, the screen is its own: a line of ours would tear its progress bar. The terminal's
title says "warm-up", "recording" and "recorded" instead. Once the script has ended, one line on stderr says
what is being done, and is gone before anything else is printed.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self, TextIO

from tfdoctor.recording import AGENT
from tfdoctor.recording.agent import AgentState
from tfdoctor.recording.files import agent_state
from tfdoctor.recording.notes import Notes

LOOK_S = 0.5

UNSIZED = 80
"""Columns of a terminal that does not say how many it has."""

TITLED = (
    "xterm",
    "screen",
    "tmux",
    "rxvt",
    "alacritty",
    "foot",
    "kitty",
    "gnome",
    "konsole",
    "vte",
)
"""Terminals that have a title; on others its text would be seen on the screen."""

KEEP, BRING_BACK = "\x1b[22;2t", "\x1b[23;2t"
"""xterm's stack of titles."""


class Title:
    """The terminal's title, while the script runs: the state of the process that got furthest."""

    def __init__(self, processes: Path, stderr: TextIO, *, quiet: bool) -> None:
        self.processes, self.stderr = processes, stderr
        known = os.environ.get("TERM", "").startswith(TITLED)
        self.shown = known and not quiet and stderr.isatty()
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._run, name="progress", daemon=True)

    def __enter__(self) -> Self:
        if self.shown:
            self._write(KEEP)
            self.thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self.shown:
            self.over.set()
            self.thread.join()
            self._write(BRING_BACK)

    def _run(self) -> None:
        said = ""
        while not self.over.wait(LOOK_S):
            words = state(self.processes)
            if words and words != said:
                self._write(f"\x1b]2;tfdoctor: {words}\a")
                said = words

    def _write(self, text: str) -> None:
        try:
            self.stderr.write(text)
            self.stderr.flush()
        except OSError:  # the terminal was closed
            self.over.set()


def state(processes: Path) -> str:
    """Say how far the run is, by what its processes have written: nothing before TensorFlow is there."""
    found = [_read(path) for path in sorted(processes.glob(f"*/{AGENT}"))]
    states = {agent.state for agent in found}
    if "open" in states:
        return "recording"
    if "done" in states:
        return "recorded"
    return "warm-up" if any(agent.wanted for agent in found) else ""


def _read(path: Path) -> AgentState:
    try:
        return agent_state(path, Notes()) or AgentState()
    except OSError:
        return AgentState()


def fresh_line(stderr: TextIO) -> None:
    """Go to the beginning of a line on a terminal: the script may have left a line unfinished.

    A line full of spaces wraps around, unless the cursor stood at its beginning: a terminal goes to the
    next line only when there is one more to show. What the cursor stood behind is not overwritten.
    """
    if stderr.isatty():
        columns = os.get_terminal_size(stderr.fileno()).columns or UNSIZED
        stderr.write(" " * columns + "\r")


@contextmanager
def line(text: str, stderr: TextIO, *, quiet: bool = False) -> Iterator[None]:
    """Show a line on a terminal for as long as this lasts, and take it away."""
    shown = not quiet and stderr.isatty()
    if shown:
        stderr.write(f"\r\x1b[Ktfdoctor: {text}")
        stderr.flush()
    try:
        yield
    finally:
        if shown:
            stderr.write("\r\x1b[K")
            stderr.flush()
