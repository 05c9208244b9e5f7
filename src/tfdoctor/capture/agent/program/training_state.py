"""What training has done by a certain step: the weights as a digest, the losses, the optimizers' updates.

Read between two steps of a trial's run, outside the steps that are timed.
"""

from __future__ import annotations

import gc
import hashlib
import sys
import weakref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..process.declared import Foreign

VARIABLES = "tensorflow.python.ops.resource_variable_ops"
# Where optimizers live in Keras 3, in tf_keras, and in Keras 2 from 2.11 on.
OPTIMIZERS = (
    ("keras.src.optimizers.base_optimizer", "BaseOptimizer"),
    ("tf_keras.src.optimizers.optimizer", "_BaseOptimizer"),
    ("keras.src.optimizers.optimizer", "_BaseOptimizer"),
)

MOST_BYTES = 2**30  # Weights that are read; a larger model is not compared
LOSSES = 20  # Steps whose losses are kept


class ReturnedLosses:
    """What the first steps returned; values are read later, for reading one waits for its step."""

    def __init__(self, steps: int) -> None:
        self.wanted = min(steps, LOSSES)
        self.kept: list[Foreign] = []

    def note(self, result: Foreign) -> None:
        """A step has returned."""
        if len(self.kept) < self.wanted:
            self.kept.append(result)

    def losses(self) -> list[float | None]:
        """Return the loss of each step; None where it returned no number."""
        kept, self.kept, self.wanted = self.kept, [], 0
        return [_loss(result) for result in kept]


def _loss(result: Foreign) -> float | None:
    """Return Keras's loss, or the first number with a fraction that a step returned."""
    if isinstance(result, dict):
        result = [result["loss"]] if "loss" in result else list(result.values())
    values = result if isinstance(result, (list, tuple)) else [result]
    for value in values:
        if getattr(value, "shape", None) == () and getattr(value.dtype, "is_floating", False):
            return float(value.numpy())
        if isinstance(value, float):
            return value
    return None


def weights() -> dict[str, object]:
    """Return a digest of all trainable variables, whatever their order, and how many there are."""
    digests, size = [], 0
    for variable in _trainable():
        size += _bytes(variable)
        if size > MOST_BYTES:
            return {"digest": None, "why": "the weights are larger than 1 GiB"}
        value = variable.numpy()
        head = f"{value.dtype} {value.shape}".encode()
        digests.append(hashlib.sha256(head + value.tobytes()).digest())
    if not digests:
        return {"digest": None, "why": "no variable was found"}
    return {"digest": hashlib.sha256(b"".join(sorted(digests))).hexdigest(), "count": len(digests)}


def finite() -> bool | None:
    """Say whether all weights are finite numbers; None where they are not read."""
    numpy: Foreign = sys.modules.get("numpy")
    variables = list(_trainable())
    if not variables or sum(map(_bytes, variables)) > MOST_BYTES:
        return None
    values = (variable.numpy() for variable in variables if variable.dtype.is_floating)
    return all(bool(numpy.isfinite(value.astype("float32")).all()) for value in values)


class Updates:
    """How often the optimizers have updated the weights, summed over all optimizers.

    An optimizer that wraps another one, for loss scaling, counts once.
    """

    def __init__(self) -> None:
        self.optimizers: list[weakref.ref[Foreign]] = []

    def find(self) -> None:
        """Look for the optimizers: those that are made later do not count."""
        kinds = _classes(OPTIMIZERS)
        found = [thing for thing in gc.get_objects() if kinds and issubclass(type(thing), kinds)]
        self.optimizers = [weakref.ref(one) for one in found if one.built and not hasattr(one, "inner_optimizer")]

    def count(self) -> int | None:
        """Return the number of updates so far; None once one of the optimizers is gone."""
        alive: list[Foreign] = [optimizer() for optimizer in self.optimizers]
        if not alive or any(one is None for one in alive):
            return None
        return sum(int(one.iterations.numpy()) for one in alive)


def _trainable() -> Iterator[Foreign]:
    """Yield the variables that train and have a value that can be read now: those of graphs have none."""
    kinds = _classes(((VARIABLES, "BaseResourceVariable"),))
    for thing in gc.get_objects() if kinds else ():
        if issubclass(type(thing), kinds) and thing.trainable:
            eager = not getattr(thing, "_in_graph_mode", True)
            if eager and thing.shape.is_fully_defined():
                yield thing


def _bytes(variable: Foreign) -> int:
    return int(variable.shape.num_elements()) * int(variable.dtype.size)


def _classes(places: tuple[tuple[str, str], ...]) -> tuple[type, ...]:
    """Return those of these classes whose modules the script has imported."""
    modules = ((sys.modules.get(module), name) for module, name in places)
    found = (getattr(module, name, None) for module, name in modules)
    return tuple(kind for kind in found if isinstance(kind, type))


def seed() -> None:
    """Fix the random numbers of a script that fixes none, so that two runs can be compared."""
    import random

    random.seed(0)
    numpy: Foreign = sys.modules.get("numpy")
    context: Foreign = sys.modules.get("tensorflow.python.eager.context")
    if numpy is not None:
        numpy.random.seed(0)
    if context is not None:
        context.set_global_seed(0)
