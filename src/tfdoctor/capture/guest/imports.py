"""Post-import hooks: act on a module once the script has imported it, and never import it first."""

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
        for hook in self.hooks:
            quietly(f"hook of {module.__name__}", self.log)(hook)(module)


def watch(hooks, log):
    """Call each hook with its module when the script imports it: {module: [hook, …]}."""
    sys.meta_path.insert(0, Watcher(hooks, log))
