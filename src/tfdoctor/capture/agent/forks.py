"""Forks of the process: one that was made in time records for itself, any other keeps silent."""

import os
import sys

from . import journal


def watch(window):
    """Look at each fork as it begins."""
    child = journal.quietly("fork", window.log)(lambda: _begun(window))
    os.register_at_fork(after_in_child=child)


def _begun(window):
    """Begin anew in a child; once TensorFlow is in use, a fork of it can train nothing.

    The journal's process number stays the parent's then, which silences all hooks; so it does in
    the forks of such a fork.
    """
    if window.log.pid == os.getppid() and not _in_use():
        window.log.begin()
        window.reset_after_fork()


def _in_use():
    """Say whether TensorFlow's runtime has started, and with it threads that no fork inherits."""
    module = sys.modules.get("tensorflow.python.eager.context")
    context = getattr(module, "_context", None)
    sessions = sys.modules.get("tensorflow.python.client.session")
    return bool(
        getattr(context, "_initialized", False) or getattr(sessions, "_tfdoctor_made", False)
    )
