"""The guest: what runs inside the user's process, and must be invisible there.

Loaded by path under the private name `_tfdoctor_guest`; standard library only, and the TensorFlow
and Keras modules that the script imports by itself, once it has. Python 3.9 syntax, so that it also
runs where tfdoctor itself could not. Whatever fails in here is recorded and never raised.
"""

from . import (
    ending,
    imports,
    journal,
    keras_loop,
    profiler,
    registry,
    session_loop,
    tf_hooks,
    window,
)


def install(plan):
    """Prepare the hooks that come into force as the script imports TensorFlow."""
    log = journal.Journal(plan["out"])
    things = registry.Registry(log)
    view = window.Window(plan, log, things)
    hooks = {}
    for module in (tf_hooks, registry, keras_loop, session_loop, profiler):
        for name, patches in module.hooks(view).items():
            hooks.setdefault(name, []).extend(patches)
    imports.watch(hooks, log)
    ending.install(view)
    log.write()
