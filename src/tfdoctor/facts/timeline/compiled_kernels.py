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

SANITIZED = re.compile(r"[^A-Za-z0-9_]")
"""Characters of instructions' names that XLA replaces by "_" in kernels' names."""


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
        called = _calls(events, matched)
        placed: dict[tuple[str, int], Operation] = {}
        for module, program in programs.programs.items():
            fingerprint = PROGRAM.search(module)
            if fingerprint and (kernels := called.get(fingerprint[1])):
                placed.update(_in_order(kernels, fingerprint[1], program, known))
        return cls(known, by_kernel, placed)

    def find(self, event: Event) -> Operation | None:
        """Return the operation that a kernel computes; None where that is unknown."""
        program, instruction = _program(event), str(event.stats.get("hlo_op", ""))
        return (
            self.operations.get((program, instruction))
            or self.by_kernel.get((program, event.name))
            or self.by_start.get((program, event.start_ps))
        )


def _program(event: Event) -> str:
    return str(event.stats.get("program_id", ""))


def _calls(events: Iterable[Event], matched: CompiledKernels) -> dict[str, list[Event]]:
    """Return the kernels of libraries that no name identifies, by program, in the order of their starts."""
    kernels: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        if "program_id" in event.stats and not COPY.match(event.name) and not matched.find(event):
            kernels[_program(event)].append(event)
    return {program: sorted(found, key=lambda event: event.start_ps) for program, found in kernels.items()}


def _in_order(
    kernels: list[Event], fingerprint: str, program: HloProgram, known: Mapping[tuple[str, str], Operation]
) -> dict[tuple[str, int], Operation]:
    """Match a program's library kernels with its library calls; nothing where the order is not certain."""
    calls = _library_calls(program)
    if not calls or len(kernels) % len(calls):
        return {}
    names = [event.name for event in kernels]
    period = names[: len(calls)]
    if any(name != period[at % len(calls)] for at, name in enumerate(names)):
        return {}
    return {
        (fingerprint, event.start_ps): known[fingerprint, calls[at % len(calls)]]
        for at, event in enumerate(kernels)
    }


def _library_calls(program: HloProgram) -> list[str]:
    """Return the matmuls of the entry that a library computes, in the order in which they run."""
    calls = {
        instruction.name
        for instruction in program.computations.get(program.entry, ())
        if instruction.matmul and instruction.target
    }
    return [name for name in program.schedule.get(program.entry, ()) if name in calls]
