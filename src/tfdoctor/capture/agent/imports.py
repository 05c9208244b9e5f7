"""Post-import hooks: act on a module once the script has imported it, and never import it first.

What is imported already when the hooks come (`tfdoctor.record`) is patched at once.
"""

import sys

from .journal import quietly


class Watcher:
    """A finder that lets the others find, and has a word with the loaders of a few modules."""

    def __init__(self, hooks, log):
        self.hooks = hooks
        self.log = log

    def find_spec(self, name, path=None, target=None):
        """Return the spec of a watched module, with our loader in between; None for any other."""
        if name not in self.hooks:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find and finder is not self else None
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = Loader(spec.loader, self.hooks[name], self.log)
                return spec
        return None


class Loader:
    """The module's own loader, followed by the hooks."""

    def __init__(self, loader, hooks, log):
        self.loader = loader
        self.hooks = hooks
        self.log = log

    def __getattr__(self, name):
        return getattr(self.loader, name)

    def create_module(self, spec):
        """Leave the creation to the module's own loader."""
        return self.loader.create_module(spec)

    def exec_module(self, module):
        """Run the module, leave no trace of us on it, then patch it."""
        self.loader.exec_module(module)
        module.__loader__ = module.__spec__.loader = self.loader
        _act(module, self.hooks, self.log)


def watch(hooks, log):
    """Call each hook with its module when the script imports it, or now: {module: [hook, …]}."""
    sys.meta_path.insert(0, Watcher(hooks, log))
    for name, each in hooks.items():
        module = sys.modules.get(name)
        if module is not None and not _unfinished(module):
            before = dict(vars(module))
            _act(module, each, log)
            quietly("names", log)(_spread)(module, before)


def _act(module, hooks, log):
    for hook in hooks:
        quietly(f"hook of {module.__name__}", log)(hook)(module)


def _unfinished(module):
    """Say whether another thread is importing the module at this moment."""
    return getattr(getattr(module, "__spec__", None), "_initializing", False)


def _spread(module, before):
    """Give the patched functions to the modules that took them by name: `tf.profiler.experimental.start`."""
    now = vars(module)
    changed = {id(old): now[name] for name, old in before.items() if now.get(name) is not old}
    if not changed:
        return
    for other in list(sys.modules.values()):
        names = getattr(other, "__dict__", None)
        for name, value in list(names.items()) if isinstance(names, dict) else ():
            if id(value) in changed:
                names[name] = changed[id(value)]
