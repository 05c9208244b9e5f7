"""The operations of programs that XLA compiled for the CPU, as JAX's profiler records them.

Each event bears the name of an HLO instruction and of its program (jaxlib 0.4 to 0.10); what the
instruction computes is in the program. Of TensorFlow's compiled functions only parts are recorded, so
these are for runs of JAX alone.
"""

from collections.abc import Iterator
from functools import cache

import numpy as np

from tfdoctor.facts.run.xla_programs import XlaPrograms, entry
from tfdoctor.trace import EventType, Line, Trace
from tfdoctor.trace.hlo import HloMatmul, HloProgram, Instruction
from tfdoctor.trace.model import Value  # noqa: TC001 - beside its siblings

DEPTHWISE = "DepthwiseConv2dNative"
"""TensorFlow's name for a convolution of each channel alone, which facts know it by."""

Row = tuple[tuple[str, str, str], EventType, int, int]
"""(operation name, its type, the instruction), what is known of it, start and end in ps."""


def compiled_work(trace: Trace, xla_programs: XlaPrograms) -> list[Row]:
    """Return every operation that ran on the host's threads; those that hold others are left out."""

    @cache
    def instructions(program: str) -> dict[str, tuple[HloProgram, Instruction]]:
        found = xla_programs.named(program)
        return {name: (found, one) for name, one in entry(found).items()} if found else {}

    rows = []
    for line in trace.host.lines if trace.host else ():
        for at in _leaves(line):
            stats, name = line.stats[at], line.types[line.kind[at]].name
            program = f"{stats.get('hlo_module')!s}({stats.get('program_id')!s})"
            kind = _kind(name, *instructions(program).get(name, (None, None)))
            start = int(line.start_ps[at])
            label = (str(kind.stats.get("tf_op", "")), kind.display_name, name)
            rows.append((label, kind, start, start + int(line.duration_ps[at])))
    return rows


def _leaves(line: Line) -> Iterator[int]:
    """Yield the events of instructions that hold no other one."""
    chosen = [at for at, stats in line.stats.items() if "hlo_op" in stats]
    starts = line.start_ps[chosen]
    following = np.append(starts[1:], np.iinfo(np.int64).max)
    inner = starts + line.duration_ps[chosen] <= following
    return (at for at, leaf in zip(chosen, inner.tolist(), strict=True) if leaf)


def _kind(name: str, program: HloProgram | None, one: Instruction | None) -> EventType:
    """Describe an instruction as a TPU's profiler would: category, FLOPs, the framework's name."""
    if program is None or one is None:
        return EventType(name)
    inside = [inner for inner in program.inside(one) if inner.product]
    flops = sum(flops_of(inner.product) for inner in inside if inner.product)
    title = _title(one, inside)
    stats: dict[str, Value] = {"tf_op": title}
    if inside:
        stats |= {"hlo_category": "convolution fusion", "flops": flops}
    if inside and all(one.product and one.product.depthwise for one in inside):
        return EventType(name, DEPTHWISE, stats)
    return EventType(name, title.rpartition("/")[2] or one.opcode, stats)


def _title(one: Instruction, products: list[Instruction]) -> str:
    """Return the framework's name of what it computes: of a fusion, of its first product."""
    return next((inner.op_name for inner in products if inner.op_name), one.op_name)


def flops_of(product: HloMatmul) -> int:
    """Return 2 x the multiplications."""
    return 2 * product.batch * product.m * product.n * product.k * product.window
