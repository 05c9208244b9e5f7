"""The cases of thread-limit: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.execution.thread_limit import DivisibleWork, check
from tfdoctor.rules.execution.thread_limit.setting import LimitOrigin, ThreadSetting

MATMUL = OperationTime(name="dense/MatMul", type="MatMul", ms=20.0, at=Location("train.py", 14), flops=7e8)


def example(
    setting: ThreadSetting = ThreadSetting(1.0, 2.0, LimitOrigin.PROGRAM, Location("train.py", 8)),
    work: DivisibleWork = DivisibleWork((MATMUL,), {MATMUL.name: 1.2}),
    cores: Cores = Cores(2.0, 1.2),
    step: Breakdown | None = None,
) -> Verdict:
    """One thread for each operation, on two cores."""
    return check(setting, work, cores, step or Breakdown.of(device=32.0, host=4.0))


sick = example


def healthy() -> Verdict:
    """The threads that TensorFlow takes by itself."""
    return example(ThreadSetting(2.0, 2.0))
