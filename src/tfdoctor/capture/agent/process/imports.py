"""Post-import hooks: act on a module once the script has imported it, and never import it first.

What is imported already when the hooks come (`tfdoctor.record`) is patched at once.
"""

from __future__ import annotations

import sys

from .frames import leave
from .journal import quietly

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

    from .declared import Foreign
    from .journal import Journal

    Hook = Callable[[Any], object]  # takes the module: only a hook knows what it has
    Hooks = Mapping[str, Sequence[Hook]]  # by the module's name


class Watcher:
    """A finder that finds nothing itself, and wraps the loaders of a few modules."""

    def __init__(self, hooks: Hooks, log: Journal) -> None:
        self.hooks = hooks
        self.log = log

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a watched module, with our loader in between; None for any other."""
        if name not in self.hooks:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            if find is None or finder is self:
                continue
            spec: ModuleSpec | None = find(name, path, target)
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    loader: Any = Loader(spec.loader, self.hooks[name], self.log)
                    spec.loader = loader
                return spec
        return None


class Loader:
    """The module's own loader, followed by the hooks."""

    def __init__(self, loader: Foreign, hooks: Sequence[Hook], log: Journal) -> None:
        self.loader = loader
        self.hooks = hooks
        self.log = log

    def __getattr__(self, name: str) -> object:
        return getattr(self.loader, name)

    def create_module(self, spec: ModuleSpec) -> object:
        """Leave the creation to the module's own loader."""
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module, leave no trace of us on it, then patch it."""
        try:
            self.loader.exec_module(module)
        except BaseException as error:
            leave(error)
            raise
        module.__loader__ = self.loader
        if module.__spec__ is not None:
            module.__spec__.loader = self.loader
        _act(module, self.hooks, self.log)


def watch(hooks: Hooks, log: Journal) -> Watcher:
    """Call each hook with its module when the script imports it, or now; return the finder that does."""
    watcher = Watcher(hooks, log)
    finders: list[Any] = sys.meta_path
    finders.insert(0, watcher)
    for name, acts in hooks.items():
        module = sys.modules.get(name)
        spec = getattr(module, "__spec__", None)
        unfinished = getattr(spec, "_initializing", False)  # another thread is importing it
        if module is not None and not unfinished:
            before = dict(vars(module))
            _act(module, acts, log)
            quietly("names", log)(_spread)(module, before)
    return watcher


def _act(module: ModuleType, hooks: Sequence[Hook], log: Journal) -> None:
    for hook in hooks:
        quietly(f"hook of {module.__name__}", log)(hook)(module)


def _spread(module: ModuleType, before: Mapping[str, object]) -> None:
    """Give the patched functions to the modules that imported them by name: `tf.profiler.experimental.start`."""
    now = vars(module)
    changed = {id(old): now[name] for name, old in before.items() if now.get(name) is not old}
    if not changed:
        return
    for other in list(sys.modules.values()):
        names = getattr(other, "__dict__", None)
        if not isinstance(names, dict):
            continue
        for name, value in list(names.items()):
            if id(value) in changed:
                names[name] = changed[id(value)]


TRAINERS = ("tensorflow", "jax", "torch")  # Frameworks that train


def versions() -> dict[str, str]:
    """Return the versions of what the script has imported."""
    known = {"python": ".".join(map(str, sys.version_info[:3]))}
    for name in (*TRAINERS, "keras", "tf_keras", "numpy"):
        version = getattr(sys.modules.get(name), "__dict__", {}).get("__version__")
        if isinstance(version, str):
            known[name] = str(version)
    build = getattr(sys.modules.get("tensorflow.python.platform.build_info"), "build_info", {})
    for name in ("cuda", "cudnn"):
        if build.get(f"{name}_version"):
            known[name] = str(build[f"{name}_version"])
    return known
