"""Whether TensorFlow's runtime has started, and with it threads that no fork inherits."""

from __future__ import annotations

import sys


def in_use() -> bool:
    """Say whether TensorFlow's context is made, or a session of version 1 is."""
    context = sys.modules.get("tensorflow.python.eager.context")
    made = getattr(context, "_context", None)
    sessions = sys.modules.get("tensorflow.python.client.session")
    return bool(getattr(made, "_initialized", False) or getattr(sessions, "_tfdoctor_made", False))
