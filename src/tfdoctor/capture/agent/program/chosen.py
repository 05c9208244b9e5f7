"""The user's lines that choose how a run is spread over the machine: its strategy and its threads."""

from __future__ import annotations

import functools
import weakref

from ..process.frames import hide
from ..process.journal import guarded
from ..process.stack import here

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..process.declared import ConfigModule, Foreign
    from ..process.imports import Hooks
    from ..process.journal import Journal
    from ..process.stack import Line

CONFIG = "tensorflow.python.framework.config"


class Choices:
    """The line that made each strategy, and the one that set the threads of single operations."""

    def __init__(self, log: Journal) -> None:
        self.log = log
        self.strategies: weakref.WeakKeyDictionary[Foreign, Line | None] = weakref.WeakKeyDictionary()
        self.threads: Line | None = None

    @guarded("strategy")
    def strategy_made(self, strategy: Foreign) -> None:
        """The script makes a strategy."""
        self.strategies[strategy] = here()

    @guarded("threads")
    def threads_set(self) -> None:
        """The script sets how many threads share one operation."""
        self.threads = here()


def hooks(choices: Choices) -> Hooks:
    """Return what to patch in which module, before TensorFlow's public names are bound to it."""
    return {CONFIG: [lambda module: _patch_threads(module, choices)]}


def _patch_threads(module: ConfigModule, choices: Choices) -> None:
    original = module.set_intra_op_parallelism_threads

    @functools.wraps(original)
    def set_intra_op_parallelism_threads(*args: object, **kwargs: object) -> object:
        choices.threads_set()
        return original(*args, **kwargs)

    module.set_intra_op_parallelism_threads = hide(set_intra_op_parallelism_threads)


def homes(strategy: Foreign, config: Foreign) -> list[str]:
    """Return the physical device of each replica of this process; a remote one keeps its own name."""
    physical: dict[str, str] = {}
    numbers: dict[str, int] = {}
    for device in config.get_visible_devices():
        kind = device.device_type
        for _ in config.get_logical_device_configuration(device) or [None]:
            number = numbers.get(kind, 0)
            physical[f"{kind}:{number}"], numbers[kind] = device.name, number + 1
    names = [str(name) for name in strategy.extended.worker_devices]
    return [physical.get(_local(name), name) for name in names]


def _local(name: str) -> str:
    """Return "GPU:0" of a device of this process, "" of one that another process may have."""
    job, _, device = name.rpartition("device:")
    return device if "/job:" not in job or "/job:localhost" in job else ""
