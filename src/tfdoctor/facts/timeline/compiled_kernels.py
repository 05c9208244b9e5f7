"""Which instruction of XLA's program each GPU kernel runs.

A kernel names its program and, outside of CUDA graphs, its instruction (stats ``program_id`` and ``hlo_op``). In
a CUDA graph ``hlo_op`` names the graph, ``command_buffer_1``. There, a kernel that XLA generated has the name of
its fusion ("loop_fusion_7" of "loop_fusion.7"; equal fusions share the kernel of the first), and kernels of cuBLAS
and cuDNN follow the order of the program's calls, which is relied on only where each call ran one kernel, and the
same one every time. Seen with JAX 0.11 on an H100.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self

from tfdoctor.facts.run.program import Operation
from tfdoctor.facts.run.xla_operations import XlaOperations
from tfdoctor.facts.run.xla_programs import XlaPrograms
from tfdoctor.trace import Event
from tfdoctor.trace.hlo import PROGRAM, HloProgram
from tfdoctor.trace.names import COPY

# Characters of instructions' names that XLA replaces by "_" in kernels' names.
SANITIZED = re.compile(r"[^A-Za-z0-9_]")


@dataclass(frozen=True, slots=True)
class CompiledKernels:
    """Finds the operation of a kernel: by its program and instruction, by its name, or by its place in time."""

    operations: Mapping[tuple[str, str], Operation] = field(default_factory=dict)
    by_kernel: Mapping[tuple[str, str], Operation] = field(default_factory=dict)
    by_start: Mapping[tuple[str, int], Operation] = field(default_factory=dict)

    @classmethod
    def of(cls, events: Iterable[Event], programs: XlaPrograms, operations: XlaOperations) -> Self:
        """Match the kernels of one GPU with the programs."""
        known = operations.operations
        if not known:
            return cls()
        by_kernel = {(program, SANITIZED.sub("_", name)): operation for (program, name), operation in known.items()}
        matched = cls(known, by_kernel)
        unnamed: dict[str, list[Event]] = defaultdict(list)  # kernels of libraries, by program
        for event in events:
            if "program_id" in event.stats and not COPY.match(event.name) and not matched.find(event):
                unnamed[str(event.stats["program_id"])].append(event)
        placed: dict[tuple[str, int], Operation] = {}
        for module, program in programs.programs.items():
            fingerprint = PROGRAM.search(module)
            if fingerprint and (kernels := unnamed.get(fingerprint[1])):
                kernels.sort(key=lambda event: event.start_ps)
                order = _in_order([event.name for event in kernels], program)
                names = [(fingerprint[1], name) for name in order]
                placed |= {(one[0], event.start_ps): known[one] for one, event in zip(names, kernels, strict=False)}
        return cls(known, by_kernel, placed)

    def find(self, event: Event) -> Operation | None:
        """Return the operation that a kernel computes; None where that is unknown."""
        program, instruction = str(event.stats.get("program_id", "")), str(event.stats.get("hlo_op", ""))
        return (
            self.operations.get((program, instruction))
            or self.by_kernel.get((program, event.name))
            or self.by_start.get((program, event.start_ps))
        )


def _in_order(kernels: list[str], program: HloProgram) -> list[str]:
    """Return the library call that each of a program's library kernels ran; [] where the order is not certain."""
    entry = program.computations.get(program.entry, ())
    of_library = {instruction.name for instruction in entry if instruction.matmul and instruction.target}
    calls = [name for name in program.schedule.get(program.entry, ()) if name in of_library]
    times = len(kernels) // len(calls) if calls else 0
    return calls * times if kernels == kernels[: len(calls)] * times else []
