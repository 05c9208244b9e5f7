"""Shows the progress of a run on a terminal, and says at its end what was recorded.

While the script runs, a line of ours would break its progress bar, so the terminal's title says "warm-up",
"recording" and "recorded". After the script, a line on stderr says what was traced or recorded.
"""

import os
import threading
from pathlib import Path
from typing import Self, TextIO

from tfdoctor.capture.missing_data import failure
from tfdoctor.recording import AGENT
from tfdoctor.recording.agent import AgentState, TracedWindow
from tfdoctor.recording.files import Notes, agent_state
from tfdoctor.recording.manifest import Manifest
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


def sentence(done: Manifest, *, recorded: bool, what: str = "run") -> str:
    """Return what the line says before the folder: "traced 20 steps, recorded".

    ``recorded`` says whether there is an account of the whole run, or of ``what`` else was recorded.
    """
    why, window = why_no_trace(done), done.window or TracedWindow()
    if done.background:
        numbers = ", ".join(map(str, done.background))
        return (
            f"the run goes on in the background (process {numbers}) and is not waited for: once it has ended, "
            "`tfdoctor report` shows what it did; recorded"
        )
    if done.workers:
        return f"{len(done.workers)} processes trained, recorded"
    if not traces(done):
        ended = done.outcome.error or failure(done)
        return f"recorded the {what} without a trace{f' ({ended})' if ended else ''}"
    if why and recorded and not done.steps.seen and not done.window:
        reason = done.outcome.error or (why if failure(done) else "")
        return f"no training step was seen{f' ({reason})' if reason else ''}, recorded the {what}"
    if why:
        return f"no steps traced ({why}), recorded"
    duration_ns = (window.stopped_unix_ns or window.started_unix_ns) - window.started_unix_ns
    traced = "1 step" if window.steps == 1 else f"{window.steps} steps"
    traced += " (more would have cost too much of the run: see --no-trace)" if done.cut_by_cost else ""
    return f"traced {traced if window.steps else f'{max(0, duration_ns) / 1e9:.1f} s'}, recorded"


def is_poor(done: Manifest, *, recorded: bool) -> bool:
    """Whether a recording holds less than was asked for, which is said even to who wants errors only."""
    if done.background:
        return True
    if not traces(done) or (recorded and not done.steps.seen and not done.window):
        return False
    return bool(why_no_trace(done))


def traces(done: Manifest) -> bool:
    """Whether steps were to be traced."""
    return done.plan is None or done.plan.trace


def why_no_trace(done: Manifest) -> str:
    """Return why there is no trace, or "" if there is one, or several workers have their own."""
    return done.trace_gap.why if done.trace_gap and not done.workers else ""
