"""Frames of ours on the user's stack: hidden wherever TensorFlow and Keras hide their own.

A wrapper is on the stack while the user's code runs below it, so tracebacks and the messages of
failed operations would name it. TensorFlow and Keras leave out what lies in `tensorflow/python`.
"""

import os
import sys

from .stack import HERE

MARK = "(tfdoctor)"


def hide(wrapper):
    """Give a function's frames a file name that says whose they are and is left out."""
    tensorflow = os.path.dirname(os.path.abspath(sys.modules["tensorflow"].__file__))
    name = os.path.join(tensorflow, "python", MARK)
    wrapper.__code__ = wrapper.__code__.replace(co_filename=name)
    return wrapper


def without_ours(trace):
    """Return a traceback without the agent's frames."""
    entries, kept = [], None
    while trace is not None:
        entries.append(trace)
        trace = trace.tb_next
    for entry in reversed(entries):
        name = entry.tb_frame.f_code.co_filename
        if not name.startswith(HERE + os.sep) and not name.endswith(MARK):
            entry.tb_next = kept
            kept = entry
    return kept
