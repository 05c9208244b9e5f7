"""recurrent-loop: both sides of each limit, and loops whose iterations are large."""

from tests.rules.kit import *
from tfdoctor.rules.execution import recurrent_loop
from tfdoctor.trace.xplane import measured

FORWARD = "StatefulPartitionedCall/lstm/while/body/_7/lstm/while/MatMul:MatMul"
BACKWARD = "gradient_tape/lstm/while/lstm/while_grad/body/_9/gradients/MatMul_grad:MatMul"
MAP = "loss/map/while"
# An operation in a call that was traced after the steps:
LATER = (("StatefulPartitionedCall/loss/map/while/body/_3/loss/map/while/MatMul:MatMul", 61.0, 62.0),)


def example(
    *loops: GraphLoop, operations_ms: float = 0.5, scheduling_ms: float = 2.9, waiting_ms: float = 0.0,
    breakdown: Breakdown | None = None, program: Program | None = None, overhead: PythonOverhead | None = None,
) -> Verdict:  # fmt: skip
    """An LSTM over 32 time steps with 2 examples: 2.9 of 5.1 ms start operations."""
    lstm = GraphLoop("sequential/lstm/while", 32.0, 160.0, operations_ms)
    around = Breakdown.of(host=scheduling_ms + 0.9, device=operations_ms + 0.5)
    work = LoopWork(loops or (lstm,), scheduling_ms, waiting_ms)
    return recurrent_loop.check(work, breakdown or around, program, overhead)


def check(iterations: float, scheduling: float, rest: float) -> Verdict:
    loop = GraphLoop("lstm/while", iterations, 4 * iterations, rest)
    step = Breakdown.of(host=scheduling, device=rest)
    return example(loop, scheduling_ms=scheduling, breakdown=step)


def looping(steps: int = 5, iterations: int = 10, per_call: int = 1) -> LoopWork:
    """Iterations of 0.2 ms, a quarter of it in a matmul, first forward and then backward."""
    rows = [marker(n, 10.0 * n, 10.0 * n + 9.0, steps=per_call) for n in range(steps)]
    rows.append(("tfdoctor_end", 10.0 * steps, 10.0 * steps))
    threads: list[Row] = []
    for step in range(steps):
        for n in range(2 * iterations):
            begin = 10.0 * step + 1.0 + 0.2 * n
            stats = {"id": step + 1, "iter_num": n % iterations}
            threads.append(("ExecutorState::Process", begin, begin + 0.2, stats))
            threads.append((FORWARD if n < iterations else BACKWARD, begin + 0.05, begin + 0.1))
    return chart(trace([line("python", *rows), line("tf_Compute", *threads)])).fact(LoopWork)


def mapping(numbers: int = 128, program: Program | None = None, later: tuple[Row, ...] = ()) -> LoopWork:
    """A loop whose operations are so cheap that none is recorded: the executor's events number its iterations.

    ``later`` is traced after the measured steps.
    """
    rows = [marker(n, 10.0 * n, 10.0 * n + 9.0) for n in range(5)]
    rows += [("tfdoctor_end", at, at) for at in (50.0, 70.0)]
    threads: list[Row] = []
    for step in range(5):
        for n in range(numbers + 1):
            begin = 10.0 * step + 1.0 + 0.05 * n
            threads.append(("ExecutorState::Process", begin, begin + 0.05, {"id": step + 1, "iter_num": n}))
        threads.append(("dense/MatMul:MatMul", 10.0 * step + 0.2, 10.0 * step + 0.7))
    given = measured(trace([line("python", *rows), line("tf_Compute", *threads, *later)]))
    return Chart([given, recording(), *([program] if program else [])]).fact(LoopWork)


def loops(*names: str) -> Program:
    at = script(22)
    return Program(tuple(Operation(name=name, type="StatelessWhile", at=at) for name in names), ())


def own(iterations: float, *, batch: int, kind: str = "") -> Verdict:
    at = script(22)
    loop = GraphLoop(MAP, iterations, 0.0, 0.0, at=at, layer="one" if kind else "")
    layer = Layer(name="one", kind="LSTM", module=kind, at=script(9))
    program = Program((), (layer,), settings=RunSettings(batch_size=batch))
    return example(loop, scheduling_ms=6.0, breakdown=Breakdown.of(host=7.0), program=program)


def mapped(*loops: GraphLoop, scheduling: float = 1.0) -> Verdict:
    step = Breakdown.of(host=2.0, device=50.0)
    return example(*loops, scheduling_ms=scheduling, breakdown=step)


def alone(taken: float, operations: float = 900.0, iterations: float = 64.0) -> GraphLoop:
    """A loop over the images of a batch."""
    row = took("map/while/body/_1/Conv2D", "Conv2D", taken, calls=operations)
    at = script(22)
    return GraphLoop("map/while", iterations, operations, taken, (row,), at, independent=True)


sick = example
healthy = described(
    "The same LSTM with 256 units and 256 examples: its matmuls take most of the step.",
    example,
    operations_ms=30.0,
    scheduling_ms=3.5,
)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["eight iterations, and fewer"] = check(8, 4.0, 1.0), check(7, 4.0, 1.0)
    told["trap: matmuls that take more than half of the step, as with a batch of 256"] = check(32, 5.0, 5.0)
    told[...] = check(32, 4.9, 5.1)
    for rest in (1.0, 0.99):
        loop, step = GraphLoop("lstm/while", 48.0, 200.0, rest), Breakdown.of(host=10.0, device=10.0)
        told[f"a healthy loop accounts for its time if it takes a tenth of 20 ms: 1 + {rest} ms"] = example(
            loop, scheduling_ms=1.0, breakdown=step
        )
    row = took("loss/while/body/_1/AddV2", "AddV2", 2.0, calls=32.0)
    loop = GraphLoop("loss/while", 32.0, 32.0, 2.0, (row,))
    taken: dict[str, Any] = {"scheduling_ms": 5.0, "waiting_ms": 6.0}
    told["the whole loop with its waits"] = example(loop, breakdown=Breakdown.of(host=6.5, device=2.5), **taken)
    taken |= {"breakdown": Breakdown.of(host=9.0, device=0.5), "overhead": PythonOverhead(1.0, 0.5)}
    told["operations around the loop go, but not the way into the call"] = example(replace(loop, rows=()), **taken)


@golden_cases
def test_loop_work(told: Cases) -> None:
    """The executor numbers the iterations of an inner loop anew in each of the outer one."""

    def work(name: str, measure: Callable[..., LoopWork], *given: Any, **more: Any) -> None:
        def found() -> list[str]:
            one = measure(*given, **more)
            times = f"{one.scheduling_ms:.1f} ms between operations, {one.waiting_ms:.1f} ms with them"
            return [f"{one.iterations:g} iterations, {times}"] + [
                f"{loop.name or 'a loop'} at {shown(loop.at)}: {loop.iterations:g}, operations {loop.operations:g}"
                for loop in one.loops
            ]

        told[name] = found

    work("a loop and its gradient are one, from the first operation to the last", looping)
    work("trap: the loop over the steps themselves", looping, per_call=20)
    work("iterations of cheap operations are counted by the executor", mapping)
    work("no iterations", mapping, 0)
    named = loops(MAP, f"gradient_tape/{MAP}/{MAP}_grad")
    work("a single loop of the program has its name and line", mapping, program=named)
    work("of two loops none is named for the executor's number", mapping, program=loops(MAP, "loss/scan/while"))
    other = ("map/while/body/_4/map/while/MatMul:MatMul", 62.0, 63.0)
    two = loops(MAP, "map/while")
    work("nor of two that were traced later", mapping, program=two, later=(*LATER, other))
    work("trap: one that was traced later, without events in the steps", mapping, program=two, later=LATER)


@golden_cases
def test_independent_iterations(told: Cases) -> None:
    told["a loop over the examples gains nothing from a larger batch"] = own(128.0, batch=128)
    told["a loop over something else may"] = own(40.0, batch=128)
    told["a recurrent layer of as many steps as examples"] = own(128.0, batch=128, kind="keras.src.layers.rnn.lstm")
    told["independent iterations need no loop, though their operations take most"] = mapped(alone(20.0))
    told["a recurrence of such operations"] = mapped(replace(alone(20.0), independent=False))
    told["operations too short to be recorded"] = mapped(alone(0.0, operations=0.0), scheduling=20.0)
    told["a fifth of the step, and less"] = mapped(alone(9.4)), mapped(alone(9.3))
    told["independent, never necessary"] = mapped(alone(9.0), scheduling=0.1)
    told[...] = mapped(alone(20.0, 100.0), scheduling=0.1)
    told["operations of 0.1 ms, and longer ones, which may take as long on all"] = mapped(alone(20.0, 200.0))
    told[...] = mapped(alone(20.0, 199.0))
    state = GraphLoop("lstm/while", 32.0, 900.0, 20.0)
    told["beside another loop only operations count: the executor is not divided"] = mapped(state, alone(12.0))
    told[...] = mapped(state, alone(2.0))
