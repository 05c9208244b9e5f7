"""GPUs of one host that train in step, with times that are known."""

from types import ModuleType

from tests.builders import Machine, Row, chart, line, markers, trace, v100
from tfdoctor.diagnose import engine
from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.rule import Rule

NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
STEPS, EACH = 6, 20


def replica(computes: float, together: float, exchange: float = 1.0) -> Machine:
    """A GPU that computes from 1 ms on, and is in an all-reduce until ``exchange`` after all are there."""
    rows: list[Row] = []
    for at in range(0, STEPS * EACH, EACH):
        rows += [("kernel", at + 1, at + 1 + computes)]
        rows += [(NCCL, at + 1 + computes, at + 1 + together + exchange)]
    return v100(line("Stream #14(Kernel)", *rows))


def examine(module: ModuleType, *gpus: Machine) -> Result:
    facts = chart(trace([markers(STEPS, EACH)], gpus=gpus))
    (result,) = engine.examine(facts, [Rule.from_module(module)])
    return result
