"""unused-gradients: both sides of the limit."""

from tests.rules.kit import *
from tfdoctor.rules.execution.unused_gradients import check
from tfdoctor.rules.execution.unused_gradients.unused_work import UnusedWork

NAMES = ("encoder/conv/kernel:0", "encoder/conv/bias:0")
TYPES = ("Conv2DBackpropFilter", 3, 4.0), ("Conv2DBackpropInput", 3, 2.0)
MOST = GradientsTaken(variables=10, unused=6, names=NAMES, types=TYPES)
UNUSED = UnusedWork(calls=20, most=MOST, at=script(43), operations=37.0, kernels_ms=6.0, host_ms=2.0)


def example(unused: UnusedWork = UNUSED, breakdown: Breakdown | None = None) -> Verdict:
    """An eager step asks for the gradients of the head, and computes those of the encoder as well."""
    return check(unused, breakdown or Breakdown.of(host=8.0, device=12.0))


sick = example
healthy = described("The encoder runs before the tape begins.", example, UnusedWork(calls=20))


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["a twentieth of the step, and less"] = example(replace(UNUSED, kernels_ms=0.0, host_ms=1.0))
    told[...] = example(replace(UNUSED, kernels_ms=0.0, host_ms=0.99))
    told["trap: np.linalg.norm(gradient) reads a returned one unseen"] = example(replace(UNUSED, returned=6))
    told["no traced step takes a gradient"] = example(UnusedWork())
    line = script(43)
    for too_few, why in ((True, "too few steps"), (False, "unseen uses")):
        for host_ms in (0.0, 0.5):
            work = replace(UNUSED, unfollowed=(line, too_few), kernels_ms=0.0, host_ms=host_ms)
            told[f"gradients that were not followed for {why}, beside {host_ms} ms that were"] = example(work)
    told["one line is known beside an unknown one"] = example(replace(UNUSED, unfollowed=(None, True)))


# UnusedWork: useless back-propagation in the time of traced steps.
TAKEN = GradientsTaken(
    ("/home/me/train.py", 43), traced=20, followed=True, operations=40, python_ms=1.0, calls_ms=7.0, step_ms=20.0,
    step_calls_ms=15.0, step_operations=200,
)  # fmt: skip


def measured(*lines: GradientsTaken, kind: DeviceKind = DeviceKind.CPU, operations: float = 200.0) -> UnusedWork:
    run = manifest(steps=StepsSeen(gradients=lines) if lines else StepsSeen(), window=TracedWindow(steps=20))
    eager = EagerWork(operations, 30.0, 0.0)
    times = Breakdown.of(host=25.0, device=15.0)  # twice as slow as before the window
    return UnusedWork.measure(recording(manifest=run), eager, times, Device(kind, 1, 1))


@golden_cases
def test_unused_work(told: Cases) -> None:
    def work(name: str, *lines: GradientsTaken, **more: Any) -> None:
        def found() -> str:
            one = measured(*lines, **more)
            times = (
                f"{one.kernels_ms:g} ms of kernels and {one.host_ms:g} of Python in {one.operations:g} operations"
            )
            return f"{one.calls} calls at {shown(one.at)}: {times}; not followed: {shown(one.unfollowed)}"

        told[name] = found

    work("the share of the noted step is that of the traced step, which is twice as slow", TAKEN)
    work("two micro-batches in a step count twice", replace(TAKEN, traced=40), operations=400.0)
    work("the kernels of an accelerator are not in the calls", TAKEN, kind=DeviceKind.GPU)
    work("a line outside the traced steps", replace(TAKEN, traced=0))
    work("a line without useless work", replace(TAKEN, operations=0, calls_ms=0.0, python_ms=0.0))
    few = replace(TAKEN, too_few=True)
    work("a line that was not followed is unknown", replace(few, followed=False))
    work("a line without a step's time is unknown", replace(few, step_ms=0.0))
    work("not followed, and outside the traced steps", replace(few, followed=False, traced=0))
    work("a trace without the operations of Python", TAKEN, operations=0.0)
    work("gradients of an older tfdoctor")
