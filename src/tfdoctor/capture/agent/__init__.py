"""The agent: what runs inside the user's process, and must be invisible there.

Loaded by path under the private name `_tfdoctor_agent`; standard library only, and the TensorFlow
and Keras modules that the script imports by itself, once it has. Python 3.9 syntax, so that it also
runs where tfdoctor itself could not. Whatever fails in here is recorded and never raised.
"""

import json
import sys

from . import journal

_begun = []
"""The journal of the process that tfdoctor itself has started."""


def begin(text):
    """Say, in the process that tfdoctor itself has started, that the hook is there."""
    log = journal.Journal(processes=json.loads(text)["processes"])
    log.write()
    _begun.append(log)


def enter(text, name):
    """Install the agent, for `name` (TensorFlow or Keras) is about to be imported; return its finder."""
    plan = json.loads(text)
    known = bool(_begun) and _begun[0].ours()  # and not a fork that imports TensorFlow for itself
    log = _begun[0] if known else journal.Journal(processes=plan["processes"])
    log.state["wanted"] = name
    try:
        install({**plan, "out": log.out}, log)
    except Exception as error:
        log.fault("install", error)
        log.write()
        raise
    return sys.meta_path[0]


def install(plan, log=None):
    """Prepare the hooks that come into force as the script imports TensorFlow."""
    from . import (
        ending,
        forks,
        imports,
        keras_loop,
        profiler,
        registry,
        session_loop,
        tf_hooks,
        window,
    )

    log = log or journal.Journal(plan["out"])
    things = registry.Registry(log)
    view = window.Window(plan, log, things)
    hooks = {}
    for module in (tf_hooks, registry, keras_loop, session_loop, profiler):
        for name, patches in module.hooks(view).items():
            hooks.setdefault(name, []).extend(patches)
    imports.watch(hooks, log)
    ending.install(view)
    forks.watch(view)
    log.write()
