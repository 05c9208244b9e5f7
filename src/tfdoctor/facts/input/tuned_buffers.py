"""The buffers of the input pipeline whose size tf.data chooses while it runs, and what they take."""

from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.input.dataset_properties import spec_bytes
from tfdoctor.facts.run.program import Dataset, Program
from tfdoctor.terms.units import count, nbytes
from tfdoctor.terms.verdict import Location, Measure, Remedy

AUTOTUNE = -1  # tf.data.AUTOTUNE
# The option of tf.data that limits the memory of what it tunes, in bytes; before 2.7 it had the second name.
BUDGET = ("autotune.ram_budget", "experimental_optimization.autotune_ram_budget")


@dataclass(frozen=True, slots=True)
class TunedBuffers:
    """The stages with ``num_parallel_calls`` or a buffer of AUTOTUNE, and the bytes of their largest element.

    A parallel stage keeps a result for each of its calls, a prefetch as many as it needs to hide the input. The
    tuner gives them up to half of the machine's free memory, which is that of the machine and not of a container.
    """

    stages: tuple[Dataset, ...]
    largest_bytes: int | None = None

    @classmethod
    def measure(cls, program: Program) -> Self:
        """Look through the feeding datasets.

        Raises:
            Unavailable: none of them is tuned, or the program limits the memory of the tuning.
        """
        sizes_of = ((one, one.parameters) for one in program.feeding)
        tuned = tuple(one for one, given in sizes_of if AUTOTUNE in {given.num_parallel_calls, given.buffer_size})
        if not tuned:
            raise Unavailable("no buffer of the pipeline has a size that tf.data chooses")
        options = [one.options or {} for one in program.feeding]
        if any(name in known for known in options for name in BUDGET):
            raise Unavailable("the program limits the memory of the buffers that tf.data tunes")
        sizes = (spec_bytes(one.element, program.batch_size) for one in tuned)
        return cls(tuned, max((size for size in sizes if size), default=None))

    @property
    def at(self) -> Location | None:
        """The line of the first stage that has one."""
        return next((one.at for one in self.stages if one.at), None)

    @property
    def evidence(self) -> tuple[Measure, ...]:
        """Their number, and their largest element."""
        number = Measure("stages whose buffers tf.data sizes by itself", count(len(self.stages)))
        size = self.largest_bytes
        return (number, Measure("largest element in these buffers", nbytes(size))) if size else (number,)

    @property
    def remedy(self) -> Remedy:
        """The limit to set, in the program."""
        return Remedy("Limit what tf.data may take for its buffers", LIMITED, self.at)


LIMITED = """\
options = tf.data.Options()
options.autotune.ram_budget = 2 << 30  # bytes; the default is half of the machine's free memory
dataset = dataset.with_options(options)  # or numbers: map(f, num_parallel_calls=4).prefetch(2)"""
