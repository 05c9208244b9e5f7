"""Training without the metrics of compile: they are there with a result, but take in no batch; the loss stays."""

from __future__ import annotations

import functools
import sys

from ..process.frames import hide
from ..process.journal import guarded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..process.declared import Foreign
    from ..process.imports import Hooks
    from .taken_out import TakenOut

KERAS_3 = "keras.src.trainers.compile_utils"
KERAS_2 = tuple(f"{package}.engine.compile_utils" for package in ("tf_keras.src", "keras.src", "keras"))

GRAPHS = "tensorflow.python.framework.func_graph"


def hooks(out: TakenOut) -> Hooks:
    """Return what to patch in which module."""
    own = SilentMetrics(out)
    return {
        KERAS_3: [lambda module: own.patch(module.CompileMetrics, "built")],
        **{name: [lambda module: own.patch(module.MetricsContainer, "_built")] for name in KERAS_2},
    }


class SilentMetrics:
    """Has the metrics of a model made, and then left alone."""

    def __init__(self, out: TakenOut) -> None:
        self.out, self.log = out, out.log

    def patch(self, kind: Foreign, built: str) -> None:
        """Take in no batch; `built` is the attribute that says whether the metrics have been made."""
        original = kind.update_state

        @functools.wraps(original)
        def update_state(metrics: Foreign, *args: object, **kwargs: object) -> None:
            if not getattr(metrics, built):
                self.make(metrics, original, args, kwargs)
            self.out.reached += 1

        kind.update_state = hide(update_state)

    @guarded("without")
    def make(
        self, metrics: object, update: Callable[..., object], args: Sequence[object], kwargs: dict[str, object]
    ) -> None:
        """Have metrics make their variables, which some do at the first batch, in a graph that nobody runs."""
        graphs: Foreign = sys.modules[GRAPHS]
        with graphs.FuncGraph("tfdoctor_without").as_default():
            update(metrics, *args, **kwargs)
