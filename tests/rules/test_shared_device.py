"""shared-device: where replicas compute, and both sides of each limit."""

from tests.rules.kit import *
from tfdoctor.rules.scale.shared_device import VALUES, CopiedWork, check

SMALL = took("replica_1/dense/MatMul", "MatMul", 0.017, calls=1.0)
UPDATES = took("adam/update_1/Mul", "Mul", 0.3, calls=217.0)
CPUS = ("/device:CPU:0", "/device:CPU:1")


def example(
    replicas: Replicas = Replicas(2, 0, batch=128, divided=True, sharing=2),
    copied: CopiedWork | None = CopiedWork((SMALL,), updates=(UPDATES,)), step: Breakdown | None = None,
    overhead: PythonOverhead | None = PythonOverhead(0.8, 0.1),
) -> Verdict:  # fmt: skip
    """Two replicas of a small model on one processor."""
    parts = step or Breakdown.of(device=1.0, host=1.2, collective=0.3)
    return check(replicas, parts, copied, overhead)


def of_run(**settings: Any) -> Replicas:
    known: dict[str, Any] = {"strategy": "MirroredStrategy", "replicas": 2, "batch_size": 128} | settings
    program = Program(settings=RunSettings(**known))
    return Replicas.measure(recording(), program)


sick = example
APART = Replicas(2, 2, batch=128, divided=True, sharing=1)
healthy = described("Two replicas, each on a GPU.", example, APART)


@golden_cases
def test_verdicts(told: Cases) -> None:
    for name, devices in (
        ("one GPU", ("GPU:0", "GPU:0")),
        ("two GPUs", ("GPU:0", "GPU:1")),
        ("a processor", ("CPU:0", "CPU:0")),
    ):
        told[f"two replicas on {name}"] = example(of_run(replica_devices=devices))
    told["logical processors are one; or unknown"] = example(replace(of_run(devices=CPUS), at=script(8)))
    told["a GPU beside them"] = example(of_run(devices=(*CPUS, "/device:GPU:0")))
    told["several workers"] = example(of_run(devices=CPUS, strategy="MultiWorkerMirroredStrategy"))
    told["trap: MirroredStrategy on a machine without several GPUs"] = example(of_run(replicas=1, devices=CPUS[:1]))
    work = CopiedWork((replace(SMALL, ms=1e-9),))
    steps = (Breakdown.of(device=100.0 - cost, collective=cost) for cost in (5.0, 4.9))
    told["a twentieth of the step, and less"] = [example(copied=work, step=step, overhead=None) for step in steps]
    told["trap: two replicas may use the cores that one leaves idle for large work"] = [
        example(copied=CopiedWork((SMALL,), (replace(SMALL, ms=growing),))) for growing in (0.017, 0.018)
    ]


# CopiedWork: the operations of further replicas, by the scopes that TensorFlow gives them.
def row(name: str, width: int = 64, ms: float = 1.0) -> OperationTime:
    tensor = ("float32", (width,))
    made = Operation(name=name, type="Mul", inputs=(tensor,), outputs=(tensor,))
    return took(name, "Mul", ms, operation=made)


def measured(*names: str, program: Program | None = None) -> CopiedWork:
    return CopiedWork.measure(Operations(tuple(map(row, names))), program or Program())


def copied(name: str, rows: tuple[OperationTime, ...]) -> str:
    return f"{name}: {', '.join(row.name for row in rows)}"


@golden_cases
def test_copied_work(told: Cases) -> None:
    found = measured("dense/Mul", "replica_1/dense/Mul", "gradient_tape/replica_3/dense/Mul")
    told["the first replica is no copy"] = copied("spared", found.spared)
    found = measured("replica_1/a", "adam/update_0_4/Mul", "adam/update_1_4/Mul", "update_1/Assign")
    told["each replica updates variables of its own"] = copied("updates", found.updates)
    for width in (VALUES, VALUES + 1):
        found = CopiedWork.measure(Operations((row("replica_1/dense/Mul", width),)), Program())
        told[f"one replica takes over the work on large tensors: {width} values"] = f"fixed: {found.fixed_share:g}"
        told[...] = copied("growing", found.growing)
    names = {"concat": "ConcatV2", "reduce": "CollectiveReduceV2", "split": "SplitV", "other": "SplitV"}
    chain = [f"adam/{name}" for name in names]
    sources = [(), *((name,) for name in chain)]
    made = (Operation(name=n, type=t, sources=of) for n, t, of in zip(chain, names.values(), sources, strict=False))
    found = measured("replica_1/a", *chain, program=Program(operations=tuple(made)))
    told["gradients are packed for the exchange and unpacked after it"] = copied("packing", found.packing)
    told["no second replica"] = lambda: measured("dense/Mul", "adam/update_0/Mul")
