"""Shows the progress of a run on a terminal, and nowhere else.

While the script runs, a line of ours would break its progress bar, so the terminal's title says "warm-up",
"recording" and "recorded". After the script, one line on stderr says what tfdoctor does (`terms/progress_line.py`).
"""

import os
import threading
from pathlib import Path
from typing import Self, TextIO

from tfdoctor.recording import AGENT
from tfdoctor.recording.agent import AgentState
from tfdoctor.recording.files import Notes, agent_state
from tfdoctor.terms.progress_line import UNSIZED
from tfdoctor.terms.text import Drawn

UPDATE_S = 0.5
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
