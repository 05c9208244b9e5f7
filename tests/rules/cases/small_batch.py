"""The cases of small-batch: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.execution.small_batch import Limits, check


def example(  # noqa: PLR0913 - one argument for each fact of the rule
    edges: float = 0.55,
    rest: float = 0.4,
    *,
    between: float = 0.05,
    input_ms: float = 0.0,
    pauses: float = 0.0,
    starting: float = 0.0,
    count: int = 20,
    source: StepSource = StepSource.MARKERS,
    device: Device = Device(DeviceKind.CPU, 1, 1),
    program: Program | None = None,
    memory: DeviceMemory | None = None,
    framework: Framework = Framework(),
    compiling: CompileTime | None = None,
    operations: Operations | None = None,
    eager: EagerWork | None = None,
    conversions: Conversions | None = None,
    limits: Limits = Limits(),
) -> Verdict:
    """A step of 1 ms whose operations take 0.4 ms."""
    host = edges + starting
    parts = Breakdown.of(host=host, device=rest, between=between, input=input_ms)
    overhead = PythonOverhead(edges, between, pauses)
    steps = replace(Steps.uniform(count, parts.step_ms), source=source)
    facts = (parts, overhead, device, steps, program, memory, framework, compiling)
    return check(*facts, operations, eager, conversions, limits)


sick = example


def healthy() -> Verdict:
    """The same call with operations of 20 ms."""
    return example(rest=20.0)
