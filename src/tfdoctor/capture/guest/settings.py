"""How the run was set up: precision, optimizer, compilation, distribution, threads, devices."""

import sys


def describe(registry, window):
    """Return the settings of the model that trained, as far as there is one."""
    model = registry.model()
    optimizer = getattr(model, "optimizer", None)
    found = {
        "policy": _policy(),
        "optimizer": _inner(optimizer),
        "loss_scale": type(optimizer).__name__ == "LossScaleOptimizer",
        "jit_compile": getattr(model, "jit_compile", None),
        "run_eagerly": getattr(model, "run_eagerly", None),
        "steps_per_execution": getattr(model, "steps_per_execution", None),
        "batch_size": registry.fit.get("batch_size"),
        "fit_at": registry.fit.get("at"),
    }
    found.update(_tensorflow(model))
    return found


def _policy():
    """Return the name of the global dtype policy, without importing Keras for it."""
    keras = sys.modules.get("keras")
    return keras.config.dtype_policy().name if keras is not None else None


def _inner(optimizer):
    """Return the class of the optimizer that does the work."""
    if optimizer is None:
        return None
    return type(getattr(optimizer, "inner_optimizer", optimizer)).__name__


def _tensorflow(model):
    """Return what TensorFlow itself was told; devices only once they are in use anyway."""
    from tensorflow.python.eager import context
    from tensorflow.python.framework import config

    if not context.context()._initialized:
        return {}
    strategy = getattr(model, "distribute_strategy", None)
    return {
        "strategy": type(strategy).__name__ if strategy is not None else None,
        "replicas": strategy.num_replicas_in_sync if strategy is not None else 1,
        "inter_op_threads": config.get_inter_op_parallelism_threads(),
        "intra_op_threads": config.get_intra_op_parallelism_threads(),
        "devices": [device.name for device in config.list_logical_devices()],
    }
