"""What the guest has to say: a small state file in the recording, replaced as a whole."""

import functools
import json
import os
import threading

MOST_ERRORS = 20
"""A fault in a hook may repeat every step; its first reports tell all."""


class Journal:
    """The state of the recording as the guest knows it; tfdoctor folds it into the manifest."""

    def __init__(self, out):
        self.out = out
        self.pid = os.getpid()
        self.errors = []
        self.state = {"errors": self.errors, "missing": []}
        self.lock = threading.RLock()

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
            temporary = os.path.join(self.out, "guest.json.tmp")
            try:
                with open(temporary, "w", encoding="utf-8") as file:
                    json.dump(self.state, file)
                os.replace(temporary, os.path.join(self.out, "guest.json"))
            except OSError as error:  # the folder went away or is full: a later write may say so
                self.fault("journal", error)


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
