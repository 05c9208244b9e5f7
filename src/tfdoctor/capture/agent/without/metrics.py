"""Training without the metrics of compile: they are there with a result, but take in no batch; the loss stays."""

from __future__ import annotations

import functools

from ..process.frames import hide

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..process.declared import Foreign
    from ..process.imports import Hooks
    from .taken_out import TakenOut

KERAS_3 = "keras.src.trainers.compile_utils"
KERAS_2 = tuple(
    f"{package}.engine.compile_utils" for package in ("tf_keras.src", "keras.src", "keras")
)


def hooks(out: TakenOut) -> Hooks:
    """Return what to patch in which module."""

    def of_keras_3(module: Foreign) -> None:
        kind = module.CompileMetrics
        original = kind.update_state

        @functools.wraps(original)
        def update_state(
            self: Foreign, y_true: object, y_pred: object, *_: object, **__: object
        ) -> None:
            if not self.built:
                self.build(y_true, y_pred)
            out.reached += 1

        kind.update_state = hide(update_state)

    def of_keras_2(module: Foreign) -> None:
        kind = module.MetricsContainer
        original = kind.update_state

        @functools.wraps(original)
        def update_state(
            self: Foreign, y_true: object, y_pred: object, *_: object, **__: object
        ) -> None:
            if not self._built:
                self.build(y_pred, y_true)
            out.reached += 1

        kind.update_state = hide(update_state)

    return {KERAS_3: [of_keras_3], **{name: [of_keras_2] for name in KERAS_2}}
