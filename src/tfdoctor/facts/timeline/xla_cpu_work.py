"""The operations of programs that XLA compiled for the CPU, as JAX's profiler records them.

Each event has the name of an HLO instruction and of its program (jaxlib 0.4 to 0.10); what the
instruction computes is in the program. TensorFlow's compiled functions are recorded only in part, so
this applies to runs of JAX alone.
"""

from functools import cache

from tfdoctor.facts.run.xla_programs import XlaPrograms, entry
from tfdoctor.facts.timeline.host_events import leaves, select
from tfdoctor.facts.timeline.work import Work, tabulate
from tfdoctor.trace import EventType, Trace
from tfdoctor.trace.hlo import HloProgram, Instruction
from tfdoctor.trace.hlo_matmul import HloMatmul
from tfdoctor.trace.stats import Value  # noqa: TC001 - beside its siblings

# TensorFlow's name for a convolution of each channel alone; facts use it for JAX's too.
DEPTHWISE = "DepthwiseConv2dNative"


def compiled_work(trace: Trace, xla_programs: XlaPrograms) -> Work:
    """Return every operation that ran on the host's threads, without those that contain others."""

    @cache
    def instructions(program: str) -> dict[str, tuple[HloProgram, Instruction]]:
        hlo = xla_programs.named(program)
        return {name: (hlo, instruction) for name, instruction in entry(hlo).items()} if hlo else {}

    rows = []
    for line in trace.host.lines if trace.host else ():
        chosen = line.stats.having("hlo_op")
        for index in chosen[leaves(select(line, chosen))].tolist():
            stats, name = line.stats.of(index), line.types[line.kind[index]].name
            program = f"{stats.get('hlo_module')!s}({stats.get('program_id')!s})"
            kind = _kind(name, *instructions(program).get(name, (None, None)))
            start = int(line.start_ps[index])
            label = (str(kind.stats.get("tf_op", "")), kind.display_name, name)
            rows.append((label, kind, start, start + int(line.duration_ps[index])))
    return tabulate(rows)


def _kind(name: str, program: HloProgram | None, instruction: Instruction | None) -> EventType:
    """Describe an instruction as a TPU's profiler would: category, FLOPs, the framework's name."""
    if program is None or instruction is None:
        return EventType(name)
    matmuls = [inner for inner in program.inside(instruction) if inner.matmul]
    flops = sum(flops_of(inner.matmul) for inner in matmuls if inner.matmul)
    # Of a fusion it is the name of its first matmul.
    title = next((inner.op_name for inner in matmuls if inner.op_name), instruction.op_name)
    stats: dict[str, Value] = {"tf_op": title}
    if matmuls:
        stats |= {"hlo_category": "convolution fusion", "flops": flops}
    if matmuls and all(inner.matmul and inner.matmul.depthwise for inner in matmuls):
        return EventType(name, DEPTHWISE, stats)
    return EventType(name, title.rpartition("/")[2] or instruction.opcode, stats)


def flops_of(matmul: HloMatmul) -> int:
    """Return the FLOPs of a matmul: two for each multiplication."""
    return 2 * matmul.batch * matmul.m * matmul.n * matmul.k * matmul.window
