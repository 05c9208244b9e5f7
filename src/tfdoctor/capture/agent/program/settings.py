"""How the run was set up: precision, optimizer, compilation, distribution, threads, devices."""

from __future__ import annotations

import sys

from ..process.journal import quietly
from ..process.kept import os
from ..process.objects import alive
from . import devices
from .choices import homes
from .datasets import batch_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..process.declared import Model
    from .registry import Registry


def describe(registry: Registry) -> dict[str, object]:
    """Return the settings of the model that trained, as far as there is one."""
    model, fit = registry.model(), registry.fit
    trainer = model if model is not None else registry.trainer()
    return {
        "policy": _policy(),
        "backend": _backend(),
        **_optimizer(model, registry.optimizers),
        # Of a model or a tf.function:
        "jit_compile": getattr(trainer, "jit_compile", getattr(trainer, "_jit_compile", None)),
        "run_eagerly": getattr(model, "run_eagerly", None),
        "steps_per_execution": getattr(model, "steps_per_execution", None),
        "batch_size": fit.get("batch_size") or batch_of(registry.feeds()),
        "fit_at": fit.get("at"),
        **{name: fit.get(name) for name in ("batches_at", "epochs", "steps_per_epoch")},
        "debugging": registry.choices.debugging(),
        **_tensorflow(model, registry),
    }


def _optimizer(model: Model | None, references: Sequence[Callable[[], object]]) -> dict[str, object]:
    """Return the class of the optimizer that does the work, and whether it, or any that is alive, scales the loss.

    Without that of a model it is the youngest one: a wrapper is made after what it wraps.
    """
    own = getattr(model, "optimizer", None)
    found = [*([] if own is None else [own]), *alive(reversed(references))]
    inner = getattr(found[0], "inner_optimizer", found[0]) if found else None
    bases = [base.__name__ for optimizer in found for base in type(optimizer).__mro__]
    return {
        "optimizer": type(inner).__name__ if found else None,
        "loss_scale": any("LossScaleOptimizer" in name for name in bases),
    }


def _policy() -> object:
    """Return the name of the global dtype policy, without importing Keras for it."""
    keras = sys.modules.get("keras") or sys.modules.get("tf_keras")
    if keras is None:
        return None
    if hasattr(keras, "config"):  # Keras 3
        return keras.config.dtype_policy().name
    return keras.mixed_precision.global_policy().name


def _backend() -> str | None:
    """Return what Keras computes with; None where it is not in use."""
    backend = getattr(getattr(sys.modules.get("keras"), "config", None), "backend", None)
    return str(backend()) if backend is not None else None


def _tensorflow(model: Model | None, registry: Registry) -> dict[str, object]:
    context = sys.modules.get("tensorflow.python.eager.context")
    config = sys.modules.get("tensorflow.python.framework.config")
    if context is None or config is None or not context.context()._initialized:
        return {}
    strategy, choices = getattr(model, "distribute_strategy", None) or registry.strategy(), registry.choices
    replicas = strategy.num_replicas_in_sync if strategy is not None else 1
    spread = {}
    if strategy is not None and replicas > 1:  # the default one of Keras' fit has neither a line nor devices
        spread = {"strategy_at": choices.strategies.get(strategy), "replica_devices": homes(strategy, config)}
    return {
        "strategy": type(strategy).__name__ if strategy is not None else None,
        "replicas": replicas,
        **spread,
        "inter_op_threads": config.get_inter_op_parallelism_threads(),
        "intra_op_threads": config.get_intra_op_parallelism_threads(),
        "intra_op_at": choices.threads,
        "intra_op_variable": os.environ.get("TF_NUM_INTRAOP_THREADS"),
        "affinity": len(os.sched_getaffinity(0)),
        "devices": [device.name for device in config.list_logical_devices()],
        # Drivers differ: what one of them refuses costs no other setting.
        "gpus": quietly("program: GPUs", registry.log)(devices.describe)(config),
    }
