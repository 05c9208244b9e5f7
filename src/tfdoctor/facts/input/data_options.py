"""The tf.data options that the script set for the pipeline that feeds its training."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.program import Program
from tfdoctor.recording.program import Setting
from tfdoctor.terms.verdict import Location

# An option under ``threading``, or ``experimental_threading`` before TensorFlow 2.7.
POOL = "private_threadpool_size"

PARALLEL_MAP = "map_parallelization"
INJECTED_PREFETCH = "inject_prefetch"
# Options that switch the other two off along with themselves.
EVERYTHING = ("autotune.enabled", "autotune", "apply_default_optimizations")

PARALLEL_COPY = "parallel_batch"
DEFAULTS = "apply_default_optimizations"

# The kind of input for which Keras builds the whole pipeline, with its own options (Keras 2 and 3).
ARRAYS = "arrays"


@dataclass(frozen=True, slots=True)
class DataOptions:
    """The options by dotted name; ``at`` is the line that applied them to the pipeline.

    ``by_keras`` says that Keras built the pipeline from arrays, so no option is the user's.
    """

    values: Mapping[str, Setting] = field(default_factory=dict)
    at: Location | None = None
    by_keras: bool = False

    @classmethod
    def measure(cls, program: Program) -> Self:
        """Read the options of the dataset that the training loop takes.

        Raises:
            Unavailable: no tf.data pipeline feeds the run, or its options were not recorded.
        """
        if not program.feeding:
            raise Unavailable("no recorded tf.data pipeline feeds the training loop")
        options = program.feeding[0].options
        if options is None:
            raise Unavailable(
                "the tf.data options were not recorded: the pipeline was built inside a graph, or an earlier "
                "tfdoctor made the recording"
            )
        lines = (dataset.at for dataset in program.feeding if dataset.kind.strip("_") == "OptionsDataset")
        by_keras = program.input_kind == ARRAYS
        return cls(options, None if by_keras else next(lines, None), by_keras)

    @property
    def pool(self) -> int | None:
        """The threads of the pipeline's private pool; None when it has none."""
        sizes = [value for name, value in self.values.items() if name.endswith(f".{POOL}")]
        return next((size for size in sizes if isinstance(size, int) and size > 0), None)

    @property
    def no_parallel_map(self) -> str:
        """The option that keeps tf.data from running a plain map in parallel; "" when none does."""
        return self._off(PARALLEL_MAP, *EVERYTHING)

    @property
    def no_prefetch(self) -> str:
        """The option that keeps tf.data from adding a prefetch; "" when none does."""
        return self._off(INJECTED_PREFETCH, *EVERYTHING)

    @property
    def no_parallel_copy(self) -> str:
        """The option that keeps tf.data from copying a large batch on all its threads; "" when none does."""
        asked = any(f".{name}".endswith(f".{PARALLEL_COPY}") and on for name, on in self.values.items())
        return "" if asked else self._off(PARALLEL_COPY, DEFAULTS)

    def _off(self, *names: str) -> str:
        off = [name for name, value in self.values.items() if value is False]
        return next((option for option in off for name in names if f".{option}".endswith(f".{name}")), "")
