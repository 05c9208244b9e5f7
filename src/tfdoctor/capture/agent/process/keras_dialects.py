"""What differs between Keras 3 and Keras 2 (tf_keras, and TensorFlow up to 2.15), as fit is calling."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Protocol

    from .declared import Foreign

    class Dialect(Protocol):
        """How one major version of Keras marks steps and keeps the state of a running fit."""

        @property
        def marks(self) -> bool:
            """Whether fit marks its steps itself."""

        @property
        def model(self) -> str:
            """The name of the class of models."""

        def steps_per_call(self, model: Foreign) -> int:
            """Return the steps of one call."""

        def read(self, local: Mapping[str, Foreign]) -> FitState | None:
            """Return the state of a fit by its local variables; None where they are another function's."""


KERAS_3 = "keras.src.backend.tensorflow.trainer"
# Where Model lives in tf_keras, in Keras from 2.13 on, and before.
KERAS_2 = ("tf_keras.src.engine.training", "keras.src.engine.training", "keras.engine.training")


class FitState:
    """What the local variables of a running fit say; Any is Keras's own."""

    def __init__(self, steps: int | None, first_epoch: int, adapter: object, datasets: tuple[Foreign, ...]) -> None:
        self.steps = steps  # of an epoch, where that is known
        self.first_epoch = first_epoch
        self.adapter = adapter
        self.datasets = datasets  # those that may feed it
        self.batch_size: Foreign = None


class Keras3:
    """`fit` has an epoch iterator; nobody marks its steps."""

    marks = False
    model = "TensorFlowTrainer"

    def steps_per_call(self, model: Foreign) -> int:
        """Return the steps of one call."""
        return int(model.steps_per_execution)

    def read(self, local: Mapping[str, Foreign]) -> FitState | None:
        """Return the state of a fit by its local variables; None where they are another function's."""
        epochs = local.get("epoch_iterator")
        if epochs is None:
            return None
        adapter = epochs.data_adapter
        # A strategy rebuilds the dataset; the adapter still has the one that we know.
        datasets = (epochs._distributed_dataset, getattr(adapter, "_dataset", None))
        first = local.get("initial_epoch") or 0
        state = FitState(epochs.num_batches, first, adapter, datasets)
        state.batch_size = adapter.batch_size
        return state


class Keras2:
    """`fit` has a data handler, and marks its steps itself."""

    marks = True
    model = "Model"

    def steps_per_call(self, model: Foreign) -> int:
        """Return the steps of one call."""
        variable = getattr(model, "_steps_per_execution", None)
        return 1 if variable is None else int(variable.numpy())

    def read(self, local: Mapping[str, Foreign]) -> FitState | None:
        """Return the state of a fit by its local variables; None where they are another function's."""
        handler = local.get("data_handler")
        if handler is None:
            return None
        adapter = handler._adapter
        datasets = (getattr(adapter, "_dataset", None), getattr(handler, "_dataset", None))
        state = FitState(handler.inferred_steps, handler._initial_epoch, adapter, datasets)
        if hasattr(adapter, "batch_size"):
            state.batch_size = adapter.batch_size()
        return state
