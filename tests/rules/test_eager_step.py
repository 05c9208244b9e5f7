"""eager-step: more time in operations outside of tf.functions than in functions."""

from itertools import chain

from tests.rules.kit import *
from tests.run_logs import Run, place
from tfdoctor.rules.tracing import eager_step

STEP = Breakdown.of(host=10.0, device=5.0)
CALLER = script(30)
STEP_AT, CALLED_AT = Location("nets.py", 23), script(38)


def example(
    work: EagerWork = EagerWork(525.0, 12.0, 0.0, asked=True, at=script(19), least_ms=4.0),
    breakdown: Breakdown | None = None, lines: HostLines | None = None, cores: Cores | None = None,
) -> Verdict:  # fmt: skip
    """A Keras model compiled with run_eagerly=True: 525 operations per step."""
    return eager_step.check(work, breakdown or Breakdown.of(host=34.0, device=12.0), lines, cores)


def check(operations: float, single: float, whole: float = 0.0, **more: Any) -> Verdict:
    lines = more.pop("lines", None)
    return example(EagerWork(operations, single, whole, **({"asked": None} | more)), STEP, lines)


def runs(number: int, work: LineWork, caller: Location | None = None, time_ms: float = 4.0) -> TimedLine:
    callers = {caller: 4} if caller else {}
    return TimedLine(script(number), 4, time_ms, callers=callers, work=work)


def on_host(*lines: TimedLine, between: tuple[TimedLine, ...] = ()) -> HostLines:
    return HostLines({Stage.HOST: lines, Stage.BETWEEN: between})


def costly(call: str, ms: float) -> TimedLine:
    return TimedLine(script(9), 9, ms, calls={call: 9}, work=LineWork.OPERATIONS)


def around(second: TimedLine, **more: Any) -> Verdict:
    """Judge a step of 200 operations, in which two lines were seen."""
    return check(200.0, 5.0, lines=on_host(runs(4, LineWork.OPERATIONS, CALLER), second), **more)


def beside_calls(own_ms: float) -> dict[str, Any]:
    """Operations of predict between the steps, and so many ms of operations of the step itself."""
    predicts = costly("keras.Model.predict", 4.0)
    return {"lines": on_host(runs(5, LineWork.OPERATIONS, time_ms=own_ms), between=(predicts,))}


def of_loop(source: str) -> EagerWork:
    seen = StepsSeen(candidates=(Candidate(source=source),))
    fed = {"at": ["t.py", 3], "function": "f", "arguments": []}
    known = recording({"python": {"fed": fed}}, manifest=manifest(steps=seen))
    rows = [(marker(n, 10 * n, 10 * n + 8), ("EagerLocalExecute: Mul", 10 * n, 10 * n + 1)) for n in range(8)]
    return chart(trace([line("python", *chain(*rows))]), known).fact(EagerWork)


def delayed(*kernels_ms: float) -> EagerWork:
    """One kernel a step; Python needs 1 ms more for each."""
    rows = list(markers(5, 10.0).rows)
    for begin, kernel_ms in enumerate(kernels_ms):
        rows.append(("EagerLocalExecute: MatMul", 10 * begin + 1, 10 * begin + kernel_ms + 2))
        rows.append(("EagerKernelExecute", 10 * begin + 1.5, 10 * begin + 1.5 + kernel_ms))
    return chart(trace([line("python", *rows)])).fact(EagerWork)


def sampled(*stacks: tuple[float, str | None, str | None]) -> EagerWork:
    """Sample a run for so many seconds in a step function, as its definition and the line that calls it."""
    run = Run()
    for number, (seconds, step, call) in enumerate(stacks):
        run.python(seconds, f"train.py:{number}", looped=True, step=place(step), step_call=place(call))
    traced = trace([line("python", *markers(5, 10.0).rows, ("EagerLocalExecute: MatMul", 1.0, 2.0))])
    return chart(traced, run.recording()).fact(EagerWork)


sick = example
WHOLE = EagerWork(0.0, 0.0, 3.8, asked=False), Breakdown.of(host=1.4, device=3.3)
healthy = described("The same model without run_eagerly: one function per step.", example, *WHOLE)


@golden_cases
def test_verdicts(told: Cases) -> None:
    large, took = (
        EagerWork(400.0, 1_100.0, 0.0, at=script(62), least_ms=600.0),
        Breakdown.of(host=150.0, device=1_100.0),
    )
    told["large products whose kernels vary"] = example(large, took)
    told["other programs hold the cores"] = example(large, took, cores=Cores(2.0, 0.5, 1.5))
    told["20 operations in a step, and fewer"] = check(20.0, 5.0, 0.0), check(19.0, 5.0, 0.0)
    told["metrics and losses that are read next to a function, and longer ones"] = check(100.0, 2.0, 2.0)
    told[...] = check(100.0, 2.1, 2.0)
    told["predict and summaries beside a function, or eager steps"] = check(200.0, 5.0, 1.0, **beside_calls(0.9))
    told[...] = check(200.0, 5.0, 1.0, **beside_calls(1.1))
    own, written = runs(5, LineWork.OPERATIONS, CALLER, 6.0), costly("tensorflow.summary.histogram", 3.0)
    told["operations take 2 of the 3 ms of Python that writes summaries, and of the 6 ms of the eager step"] = (
        check(104.0, 2.0, lines=on_host(own, written))
    )
    told["what is no operation and the call of one function remain"] = check(200.0, 5.0)
    told[...] = check(200.0, 5.0, lines=on_host(runs(5, LineWork.PYTHON, CALLER, time_ms=3.5)))
    beside = on_host(runs(40, LineWork.READING), runs(41, LineWork.OPERATIONS))
    told["operations beside a compiled step are not it"] = check(60.0, 5.0, 1.0, beside="train_step", lines=beside)
    told["operations of one caller"] = around(runs(5, LineWork.OPERATIONS, CALLER))
    told["an environment in NumPy, between calls, stays outside"] = around(runs(5, LineWork.OPERATIONS, None))
    told[...] = around(runs(5, LineWork.READING, CALLER)), around(runs(5, LineWork.PYTHON, CALLER))
    told["run_eagerly was asked for"] = around(runs(5, LineWork.PYTHON, CALLER), asked=True)
    told["the remedy is what the loop needs"] = [check(200.0, 5.0, asked=asked) for asked in (True, False)]
    told["on a CPU the kernels remain as fast as they were seen, unless they are unknown or take no less time"] = [
        check(200.0, 5.0, least_ms=least) for least in (0.0, 1.0, 4.0, 5.0, 6.0)
    ]
    work = EagerWork(200.0, 5.0, 0.0, at=Location("nets.py", 18), step_at=STEP_AT, called_at=CALLED_AT)
    told["the definition is the place and the call is shown"] = example(work, STEP)
    told["the line of fit, whose step is Keras' own"] = example(replace(work, asked=True), Breakdown.of(host=10.0))
    told["a compiled function is the step where Python takes no gradients"] = of_loop("tf-data-loop")
    told["Python takes gradients"] = of_loop("eager-gradient")
    told["a kernel that was delayed counts as its fastest"] = delayed(3.0, 1.0, 3.0, 4.0, 3.0)
    called = [(2.0, "nets.py:23", 38), (2.5, "nets.py:23", 40), (1.0, "nets.py:23", 38), (3.0, "nets.py:80", 60)]
    seen = [(seconds, step, f"train.py:{line}") for seconds, step, line in called]
    told["the function of most samples is the step: the loop is mostly other Python, and two lines call it"] = (
        sampled((9.0, None, None), *seen)
    )
    told["no function was sampled"] = sampled((9.0, None, None))
