"""Settings of a trial that no environment variable can make, and whether those of the environment arrived.

A setting that reaches nothing must not be timed: its run would be one of the program as it is.
"""

from __future__ import annotations

import sys

from ..process.kept import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..process.declared import Foreign, VariantPlan
    from ..stream import Point, Stream

# Threads of a pool of its own for each tf.data pipeline; no function is compiled with XLA.
POOL_THREADS, NO_XLA = "pool-threads", "no-xla"
# Attribute of a dataset: the same with a pool of its own, for a loop is known by its dataset.
KEPT = "_tfdoctor_with_options"
# How the modules of functions begin that TensorFlow has for itself: no program needs to call them.
TENSORFLOW = "tensorflow."

# Variables that TensorFlow ignores where the program has set a number by `tf.config.threading`.
CONFIGURED = {
    "TF_NUM_INTEROP_THREADS": "get_inter_op_parallelism_threads",
    "TF_NUM_INTRAOP_THREADS": "get_intra_op_parallelism_threads",
}


class RunnerSettings:
    """What a variant sets, and how many datasets or functions it was set on."""

    def __init__(self, variant: VariantPlan) -> None:
        self.wanted, self.environment = variant["settings"], variant["environment"]
        self.reached = dict.fromkeys(self.wanted, 0)
        # TensorFlow is about to be imported: what the program has changed by now counts.
        self.replaced = [name for name, value in self.environment.items() if os.environ.get(name) != value]

    def summary(self) -> dict[str, object]:
        """Return what the trial reads: how often each setting was made, and the variables that had no effect."""
        config: Foreign = sys.modules.get("tensorflow.python.framework.config")
        configured = [
            name
            for name, ask in CONFIGURED.items()
            if name in self.environment and config is not None and getattr(config, ask)()
        ]
        return {"reached": self.reached, "replaced": self.replaced + configured}

    def listen(self, stream: Stream) -> None:
        """Make the settings as datasets are iterated, or functions made."""
        if POOL_THREADS in self.wanted:
            stream.on("dataset options", lambda point: lambda _, args, *__: lambda: self._own_pool(point, args[0]))
        if NO_XLA in self.wanted:
            stream.on("function made", lambda _: lambda held, args, *__: held.append((self._no_xla, args[0])))

    def _own_pool(self, point: Point, given: Foreign) -> Foreign:
        """Iterate, wherever a dataset is iterated, over the same with a pool of threads of its own."""
        dataset = point.original(given)
        if dataset.options().threading.private_threadpool_size is not None:
            return dataset
        known = vars(dataset).get(KEPT)
        if known is None:
            options: Foreign = sys.modules["tensorflow.python.data.ops.options"]
            own = options.Options()
            own.threading.private_threadpool_size = self.wanted[POOL_THREADS]
            known = vars(dataset)[KEPT] = dataset.with_options(own)
            self.reached[POOL_THREADS] += 1
        return known

    def _no_xla(self, function: Foreign, _: object, error: BaseException | None) -> None:
        """Make each tf.function without XLA, Keras' included."""
        if error is None and function._jit_compile:
            function._jit_compile = False
            module_of: str = getattr(function.python_function, "__module__", None) or ""
            self.reached[NO_XLA] += not module_of.startswith(TENSORFLOW)
