"""shared-device: where replicas compute, and both sides of each limit."""

import pytest

from tests.rules.kit import *
from tfdoctor.rules.scale.shared_device import VALUES, CopiedWork, Limits, check

SMALL = OperationTime(name="replica_1/dense/MatMul", type="MatMul", ms=0.017, calls=1.0)


UPDATES = OperationTime(name="adam/update_1/Mul", type="Mul", ms=0.3, calls=217.0)


def example(
    replicas: Replicas = Replicas("MirroredStrategy", 2, 0, batch=128, divided=True, sharing=2),
    copied: CopiedWork | None = CopiedWork((SMALL,), updates=(UPDATES,)),
    step: Breakdown | None = None,
    overhead: PythonOverhead | None = PythonOverhead(0.8, 0.1),
) -> Verdict:
    """Two replicas of a small model on one processor."""
    parts = step or Breakdown.of(device=1.0, host=1.2, collective=0.3)
    return check(replicas, parts, copied, overhead)


sick = example


def healthy() -> Verdict:
    """Two replicas, each on a GPU."""
    return example(Replicas("MirroredStrategy", 2, 2, batch=128, divided=True, sharing=1))


CPUS = ("/device:CPU:0", "/device:CPU:1")


def of_run(**settings: Any) -> Replicas:
    known: dict[str, Any] = {"strategy": "MirroredStrategy", "replicas": 2, "batch_size": 128} | settings
    program = Program(settings=RunSettings(**known))
    return Replicas.measure(recording(), program)


def test_replicas_on_one_physical_device_are_found() -> None:
    cases = (("GPU:0", "GPU:0"), ("GPU:0", "GPU:1"), ("CPU:0", "CPU:0"))
    assert kinds(*(example(of_run(replica_devices=one)) for one in cases)) == [Finding, Healthy, Finding]


def test_logical_processors_are_one_also_where_devices_were_not_recorded() -> None:
    two, mixed = of_run(devices=CPUS), of_run(devices=(*CPUS, "/device:GPU:0"))
    workers = of_run(devices=CPUS, strategy="MultiWorkerMirroredStrategy")
    assert kinds(example(two), example(mixed), example(workers)) == [Finding, NotApplicable, NotApplicable]


def test_one_replica_is_no_copy() -> None:
    """Trap: MirroredStrategy on a machine without several GPUs."""
    assert "one replica" in as_not_applicable(example(of_run(replicas=1, devices=CPUS[:1]))).reason


def test_a_small_cost_is_healthy() -> None:
    steps = (Breakdown.of(device=100.0 - cost, collective=cost) for cost in (100 * Limits().share, 4.9))
    copied = CopiedWork((replace(SMALL, ms=1e-9),))
    assert kinds(*(example(copied=copied, step=step, overhead=None) for step in steps)) == [Finding, Healthy]


def test_replicas_that_share_large_work_are_not_judged() -> None:
    """Trap: two replicas may use the cores that one leaves idle."""
    works = (CopiedWork((SMALL,), (replace(SMALL, ms=growing),)) for growing in (0.017, 0.018))
    assert kinds(*(example(copied=copied) for copied in works)) == [Finding, NotApplicable]


def test_one_replica_spares_the_copies_the_exchange_and_half_of_the_entry() -> None:
    found = effects(example(overhead=PythonOverhead(0.8, 0.1)))
    left = {part: left for part, _, left, _ in found}
    assert (left[Stage.COLLECTIVE], left[Stage.DEVICE], left[Stage.HOST]) == (0.0, 0.0, 0.5)
    assert {bound for *_, bound in found} == {Bound.AT_MOST}


def test_the_line_is_the_one_that_makes_the_strategy() -> None:
    line = replace(of_run(devices=CPUS), at=Location("train.py", 8))
    assert as_finding(example(line)).remedies[0].at == Location("train.py", 8)


# CopiedWork: the operations of further replicas, by the scopes that TensorFlow gives them.


def row(name: str, width: int = 64, ms: float = 1.0) -> OperationTime:
    tensor = ("float32", (width,))
    made = Operation(name=name, type="Mul", inputs=(tensor,), outputs=(tensor,))
    return OperationTime(name=name, type="Mul", ms=ms, operation=made)


def measured(*names: str, program: Program | None = None) -> CopiedWork:
    return CopiedWork.measure(Operations(tuple(map(row, names))), program or Program())


def test_the_first_replica_is_no_copy() -> None:
    found = measured("dense/Mul", "replica_1/dense/Mul", "gradient_tape/replica_3/dense/Mul")
    assert [one.name for one in found.spared] == ["replica_1/dense/Mul", "gradient_tape/replica_3/dense/Mul"]


def test_each_replica_updates_variables_of_its_own() -> None:
    found = measured("replica_1/a", "adam/update_0_4/Mul", "adam/update_1_4/Mul", "update_1/Assign")
    assert [one.name for one in found.updates] == ["adam/update_1_4/Mul", "update_1/Assign"]


def test_one_replica_takes_over_the_work_on_large_tensors() -> None:
    for width, fixed in ((VALUES, 1.0), (VALUES + 1, 0.0)):
        found = CopiedWork.measure(Operations((row("replica_1/dense/Mul", width),)), Program())
        assert (found.fixed_share, bool(found.growing)) == (fixed, not fixed)


def test_gradients_are_packed_for_the_exchange_and_unpacked_after_it() -> None:
    names = {"concat": "ConcatV2", "reduce": "CollectiveReduceV2", "split": "SplitV", "other": "SplitV"}
    chain = [f"adam/{name}" for name in names]
    sources = [(), *((name,) for name in chain)]
    made = (Operation(name=n, type=t, sources=of) for n, t, of in zip(chain, names.values(), sources, strict=False))
    program = Program(operations=tuple(made))
    found = measured("replica_1/a", *chain, program=program)
    assert [one.name for one in found.packing] == ["adam/concat", "adam/split"]


def test_without_a_second_replica_there_is_nothing_to_measure() -> None:
    with pytest.raises(Unavailable, match="second replica"):
        measured("dense/Mul", "adam/update_0/Mul")
