"""What the agent has to say: a small state file in a folder of its process, replaced as a whole."""

import functools
import json
import os
import sys
import threading

from .masking import masked
from .rank import rank

MOST_ERRORS = 20
"""A fault in a hook may repeat every step; its first reports tell all."""


class Journal:
    """The state of the recording as the agent knows it; tfdoctor folds it into the manifest."""

    def __init__(self, out=None, processes=None):
        self.processes = processes
        self.begin(out)

    def begin(self, out=None):
        """Begin with nothing noted yet, in this folder or in a new one below `processes`."""
        self.lock = threading.RLock()
        self.folder = out
        self.pid = os.getpid()
        self.errors = []
        self.state = {"errors": self.errors, "missing": [], **identity()}

    @property
    def out(self):
        """The folder of this process: made when there is something to put there."""
        if self.folder is None:
            self.folder = own_folder(self.processes)
        return self.folder

    def ours(self):
        """Say whether this is the process that was started, and not a fork of it."""
        return os.getpid() == self.pid

    def fault(self, where, error):
        """Note a fault of ours."""
        if len(self.errors) < MOST_ERRORS:
            self.errors.append({"where": where, "error": f"{type(error).__name__}: {error}"[:500]})

    def missing(self, what, why):
        """Note what this recording lacks, and what the user can do about it."""
        self.state["missing"].append({"what": what, "why": why})

    def write(self):
        """Replace the state file."""
        if not self.ours():
            return
        with self.lock:
            try:
                temporary = os.path.join(self.out, "agent.json.tmp")
                with open(temporary, "w", encoding="utf-8") as file:
                    json.dump(self.state, file)
                os.replace(temporary, os.path.join(self.out, "agent.json"))
            except OSError as error:  # the folder went away or is full: a later write may say so
                self.fault("journal", error)


def own_folder(processes):
    """Make a folder for this process that nobody has, <host>.<pid>, and return its path.

    Several hosts may share `processes`, and a process that replaces itself (`os.execv`) keeps its number.
    """
    name = f"{os.uname().nodename}.{os.getpid()}"
    again = 0
    while True:
        folder = os.path.join(processes, f"{name}.{again}" if again else name)
        try:
            os.mkdir(folder)
        except FileExistsError:
            again += 1
        else:
            return folder


def identity():
    """Return which process this is."""
    return {
        "pid": os.getpid(),
        "ppid": os.getppid(),
        "host": os.uname().nodename,
        "argv": masked(list(getattr(sys, "orig_argv", None) or getattr(sys, "argv", []))),
        "rank": rank(os.environ),
        "versions": {"python": ".".join(map(str, sys.version_info[:3]))},
    }


def quietly(where, log, otherwise=None):
    """Make a function record its faults instead of raising them."""

    def decorate(function):
        @functools.wraps(function)
        def careful(*args, **kwargs):
            try:
                return function(*args, **kwargs)
            except Exception as error:  # the user's run goes on, whatever it was
                log.fault(where, error)
                return otherwise

        return careful

    return decorate
