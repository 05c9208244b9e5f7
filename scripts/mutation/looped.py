"""A trace with what the samples lack: loops in the graph, operations that Python runs, tracing and compiling."""

from scripts.synthetic.xspace import MS, STARTED_NS, Line, Space

STEPS = 6
ITERATIONS = 4
STEP, ITERATION = 10 * MS, MS // 2

FORWARD = ("lstm/while/cond/_6/lstm/while/Less:Less", "lstm/while/body/_7/lstm/while/MatMul:MatMul")
BACKWARD = ("gradient_tape/lstm/while/lstm/while_grad/body/_9/gradients/MatMul_grad:MatMul",)
SAMPLED = {
    "began_unix_ns": STARTED_NS,
    "places": [
        {
            "at": ["/home/user/train/train.py", line],
            "calls": calls,
            "inside": calls.endswith("__call__"),
            "runs": calls,
            "seen": STEPS,
            "when_us": [step * 10_000 + 1_000 * line for step in range(1, STEPS + 1)],
        }
        for line, calls in enumerate(
            (
                "",
                "keras.src.trainers.trainer.Trainer.predict",
                "tensorflow.python.eager.polymorphic_function.polymorphic_function.Function.__call__",
            )
        )
    ],
    "others": [{"seen": 2, "entry": "tensorflow.python.ops.script_ops.__call__", "runs": "read"}],
}
"""Stack samples in every step."""

REST = ("dense/MatMul:MatMul", "gradient_tape/dense/MatMul:MatMul", "Adam/Update:ResourceApplyAdam")


def looped(*, marked: bool) -> bytes:
    """Return the trace; without marks the steps are to be found by what recurs."""
    space = Space()
    host = space.plane("/host:CPU", profile_start_time=STARTED_NS)
    python, compute, pool = (host.line(at, name) for at, name in enumerate(LINES))
    for step in range(STEPS):
        begin = step * STEP
        if marked:
            python.add("train", begin, STEP - MS, _r=1, step_num=step)
        _call(python, begin, step)
        _loop(compute, pool, begin, step)
    if marked:
        python.add("tfdoctor_end", STEPS * STEP, 0)
    return space.serialized()


LINES = ("python", "tf_Compute", "tf_Compute/_Eigen/1")


def _call(python: Line, begin: int, step: int) -> None:
    """Add what Python runs in a step."""
    traced = "traced-nonXla" if step == 1 else "notTraced-nonXla"
    python.add("step", begin + 1, 7 * MS, tf_function_call=traced, tracing_count=1)
    python.add("EagerExecute", begin + 2, 6 * MS, is_func=1, eager_op="__inference_step_1")
    python.add("FunctionRun", begin + 3, 5 * MS, id=step + 1)
    for name in ("EagerLocalExecute: Mul", "EagerKernelExecute", "tf.constant"):
        python.add(name, begin + 8 * MS, MS // 4)
    if step == 1:
        python.add("tf.function-graph_building", begin + 4, MS)
        python.add("XlaCompile", begin + 2 * MS, MS)


def _loop(compute: Line, pool: Line, begin: int, step: int) -> None:
    """Add the operations of a step: a loop, its gradient, and the rest on another thread."""
    at = begin + MS
    for loop in (FORWARD, BACKWARD):
        for number in range(ITERATIONS):
            compute.add("ExecutorState::Process", at, ITERATION, id=step + 1, iter_num=number)
            for place, name in enumerate(loop):
                compute.add(name, at + (place + 1) * ITERATION // 4, ITERATION // 8)
            at += ITERATION
    pool.add("ExecutorState::Process", at, 2 * MS, id=step + 1, iter_num=0)
    for place, name in enumerate(REST):
        pool.add(name, at + place * MS // 2, MS // 4)
