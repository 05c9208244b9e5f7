"""Detours are told by the names of copies and by the operations of the host between them."""

from tests.facts.kit import *

STEPS = 8
THERE, BACK = "model/dense/Relu/_30:_HostRecv", "model/smooth/EagerPyFunc/_32:_Recv"
WORK = "model/smooth/EagerPyFunc:EagerPyFunc"


def traced(
    there: str = THERE, back: str = BACK, work: str = WORK, *, kernel_between: bool = False, stat: str = "tf_op"
) -> Chart:
    """Trace steps of 20 ms: a copy of 1 ms at 5 ms, work on the host, and a copy of 1 ms at 10 ms."""
    starts = [20.0 * step for step in range(STEPS)]
    between = [(7, 8)] if kernel_between else []
    kernels = [("gemm", at + a, at + b) for at in starts for a, b in ((1, 5), *between, (11, 15))]
    copies: list[Any] = [("MemcpyD2H", at + 5, at + 6, {stat: there}) for at in starts]
    copies += [("MemcpyH2D", at + 10, at + 11, {stat: back}) for at in starts]
    host = line("tf_Compute/1", *((work, at + 6.5, at + 9.5) for at in starts))
    gpu = v100(line("Stream #1", *kernels), line("Stream #2", *copies))
    return chart(trace([markers(STEPS, 20.0, 18.0), host], gpus=[gpu]))


def measured(*args: Any, **more: Any) -> Detours:
    """Measure the detours of such steps."""
    return traced(*args, **more).fact(Detours)


@each("tf_op", "annotation", "level 0")
def test_a_detour_costs_both_copies_and_the_wait(stat: str) -> None:
    (row,) = measured(stat=stat).rows
    assert (row.name, row.type) == ("model/smooth/EagerPyFunc", "EagerPyFunc")
    assert (row.copies_ms, row.waiting_ms) == pytest.approx((2.0, 4.0))
    assert row.calls == pytest.approx(1.0)


@cases((WORK, 0.0), ("other/Mul:Mul", 1.0))
def test_python_does_not_read_what_an_operation_on_the_host_takes(work: str, reads: float) -> None:
    assert traced(work=work).fact(HostSyncs).reads == pytest.approx(reads)


@each(
    {"kernel_between": True},  # Trap: the result is needed later only, and the GPU goes on meanwhile.
    # Trap: the loss goes to the host, and a batch comes in the same step.
    {"back": "IteratorGetNext/_2:_Recv", "work": "IteratorGetNext:IteratorGetNext"},
    {"work": "other/Mul:Mul"},  # copies of something else
    {"there": "#edge_name=copy#"},  # a value that Python reads has no name
    ids=["goes on", "a batch", "something else", "a value"],
)
def test_what_is_no_detour(changed: dict[str, Any]) -> None:
    assert measured(**changed).rows == ()


test_what_is_not_known = unavailable(
    (lambda: chart(trace([markers(STEPS, 20.0)])).fact(Detours), "GPU"),
    (lambda: measured(there="", back=""), "name"),  # as in traces of JAX
)
