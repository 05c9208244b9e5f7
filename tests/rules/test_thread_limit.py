"""thread-limit: both sides of each limit, and limits that cost nothing."""

from tests.rules.kit import *
from tfdoctor.facts.timeline.activity import tabulate
from tfdoctor.recording.manifest import HostMachine
from tfdoctor.rules.execution.thread_limit import FLOP, DivisibleWork, check
from tfdoctor.rules.execution.thread_limit.setting import LimitOrigin, ThreadSetting

MATMUL = took("dense/MatMul", "MatMul", 20.0, at=script(14), flops=7e8)


def example(
    setting: ThreadSetting = ThreadSetting(1.0, 2.0, LimitOrigin.PROGRAM, script(8)),
    work: DivisibleWork = DivisibleWork((MATMUL,), {MATMUL.name: 1.2}), cores: Cores = Cores(2.0, 1.2),
    step: Breakdown | None = None,
) -> Verdict:  # fmt: skip
    """One thread for each operation, on two cores."""
    return check(setting, work, cores, step or Breakdown.of(device=32.0, host=4.0))


sick = example
healthy = described("The threads that TensorFlow takes by itself.", applied, check, ThreadSetting(2.0, 2.0))


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["half a core is idle, and less"] = [example(cores=Cores(2.0, busy)) for busy in (1.5, 1.6)]
    told["a tenth of the step is gained, and less"] = [
        example(work=DivisibleWork((replace(MATMUL, ms=ms),), {MATMUL.name: 1.0}), step=Breakdown.of(device=100.0))
        for ms in (20.0, 19.8)
    ]
    told["trap: a second core that no operation would use"] = example(work=DivisibleWork((), {}))
    told["trap: operations that run two at a time"] = example(work=DivisibleWork((MATMUL,), {MATMUL.name: 2.0}))
    told["trap: the cores are used, though not by this run"] = example(cores=Cores(2.0, 1.0, others=0.9))
    told["cores that were not sampled"] = example(cores=Cores(2.0, 1.0, sampled=False))
    for origin in (LimitOrigin.AFFINITY, LimitOrigin.QUOTA):
        told[f"a limit on the whole run by {origin.name.lower()} is reached, and is not"] = [
            example(ThreadSetting(2.0, 8.0, origin), cores=Cores(2.0, busy)) for busy in (1.5, 1.4)
        ]


# DivisibleWork: operations that more threads would share, and what ran beside them.
@golden_cases
def test_shared_work(told: Cases) -> None:
    matmul, product = (took("a", kind, 1.0, ran=("a",)) for kind in ("MatMul", "Mul"))
    for name, row in (
        ("a matmul of enough FLOP", replace(matmul, flops=FLOP)),
        ("a matmul of less", replace(matmul, flops=FLOP - 1, nbytes=1e8)),
        ("a product of a megabyte", replace(product, nbytes=1e6)),
        ("a product of less", replace(product, nbytes=1e6 - 1)),
        ("a product of unknown size", product),
    ):
        work = tabulate([(("a", row.type, "a"), EventType("a"), 0, 1)])
        activity = Activity(Intervals(), {Stage.DEVICE: work}, Intervals())
        told[name] = DivisibleWork.measure(activity, Operations((row,)), even_steps(3, 10.0)).rows


def test_an_operation_that_runs_beside_another_uses_two_cores_already() -> None:
    """Each takes half of the time alone, and half beside the other one: 1.33 at a time in its wall time."""
    matrix = ["float32", [512, 512]]
    made = [graph_operation(name, "MatMul", [matrix] * 2, [matrix]) for name in ("m/a", "m/b")]

    def thread(number: int, name: str, step: int, start: int) -> Thread:
        at = 10 * step
        work = (f"m/{name}:MatMul", at + start, at + start + 4)
        return line(f"tf_{name}/{step}", executor(at + 1, at + 8, step + number), work)

    threads = (
        thread(number, name, step, start) for number, name, start in ((1, "a", 1), (9, "b", 3)) for step in range(4)
    )
    found = chart(trace([markers(4, 10, 9), *threads]), recording({"graphs": [{"operations": made}]})).fact(
        DivisibleWork
    )
    assert found.beside == near({"m/a": 4 / 3, "m/b": 4 / 3})
    assert [effect.scales for effect in found.effects(1.0, 2.0)] == near([2 / 3] * 2)
    assert [effect.scales for effect in found.effects(2.0, 2.0)] == [1.0] * 2


# ThreadSetting: which of several limits counts, and what it is set on.
LINE = ("/home/me/train.py", 8)


def measured(*, cores: int = 4, quota: float | None = None, variable: str = "", **more: Any) -> ThreadSetting:
    host = HostMachine("vm", "", (), cores, min(float(more.get("affinity") or cores), quota or cores))
    environment = {"TF_NUM_INTRAOP_THREADS": variable} if variable else {}
    of_run = recording(
        samples=[{"unix_ns": 1, "host": {"quota_cores": quota}}],
        manifest=manifest(host=host, environment=environment),
    )
    return ThreadSetting.measure(of_run, Program(settings=RunSettings(**more)), Framework())


@golden_cases
def test_settings(told: Cases) -> None:
    told["the program has the last word and a line"] = measured(intra_op_threads=1, intra_op_at=LINE, variable="2")
    told["a program that takes all cores hides the variable"] = measured(intra_op_threads=4, variable="1")
    told["the variable counts where the program sets nothing"] = measured(intra_op_threads=0, variable="2")
    told["a variable that the program sets"] = measured(intra_op_threads=0, intra_op_variable="2")
    told["the affinity of the process"] = measured(affinity=2)
    told["a quota below it"] = measured(quota=1.5, affinity=2)
    for variable in ("", "0", "many", "4", "8"):
        told[f"a variable that limits nothing: {variable!r}"] = measured(variable=variable)
    told["a program that takes all of a quota"] = measured(intra_op_threads=2, quota=2.0)
    told["an unknown machine"] = lambda: ThreadSetting.measure(recording(), Program(), Framework())
