"""What differs between Keras 3 and Keras 2 (tf_keras, and TensorFlow up to 2.15), as fit is calling."""

KERAS_3 = "keras.src.backend.tensorflow.trainer"
KERAS_2 = ("tf_keras.src.engine.training", "keras.src.engine.training", "keras.engine.training")
"""Where Model lives in tf_keras, in Keras from 2.13 on, and before."""


class Keras3:
    """`fit` has an epoch iterator; nobody marks its steps."""

    marks = False
    model = "TensorFlowTrainer"

    @staticmethod
    def k(model):
        """Return the steps of one call."""
        return int(model.steps_per_execution)

    @staticmethod
    def read(local):
        """Return (batches of an epoch or None, first epoch, adapter, datasets, batch size) of a fit."""
        epochs = local.get("epoch_iterator")
        if epochs is None:
            return None
        adapter = epochs.data_adapter
        # A strategy rebuilds the dataset; the adapter still has the one that we know.
        given = (epochs._distributed_dataset, getattr(adapter, "_dataset", None))
        first = local.get("initial_epoch") or 0
        return epochs.num_batches, first, adapter, given, adapter.batch_size


class Keras2:
    """`fit` has a data handler, and marks its steps itself."""

    marks = True
    model = "Model"

    @staticmethod
    def k(model):
        """Return the steps of one call."""
        variable = getattr(model, "_steps_per_execution", None)
        return 1 if variable is None else int(variable.numpy())

    @staticmethod
    def read(local):
        """Return (batches of an epoch or None, first epoch, adapter, datasets, batch size) of a fit."""
        handler = local.get("data_handler")
        if handler is None:
            return None
        adapter = handler._adapter
        given = (getattr(adapter, "_dataset", None), getattr(handler, "_dataset", None))
        size = adapter.batch_size() if hasattr(adapter, "batch_size") else None
        return handler.inferred_steps, handler._initial_epoch, adapter, given, size
