"""The cases of serial-batch: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.input.serial_batch import check


def element(shape: str, dtype: str = "float32") -> str:
    """Return tf.data's text for batches of examples of a shape."""
    return f"TensorSpec(shape=(None, {shape}), dtype=tf.{dtype}, name=None)"


def example(  # noqa: PLR0913 - what the verdict depends on
    *others: StageTime,
    batches: str = element("224, 224, 3"),
    size: int = 64,
    kind: str = "BatchV2",
    work: float = 20.0,
    threads: float = 1.0,
    wait: float = 10.0,
    device: Device = Device(DeviceKind.GPU, 1, 1),
    cores: Cores | None = Cores(4.0, busy=1.0),
    options: DataOptions | None = DataOptions({"experimental_optimization.parallel_batch": False}),
    at: Location | None = None,
) -> Verdict:
    """One thread copies batches of 64 images of 602 kB for 20 ms per step, because of an option."""
    made = Dataset(
        id=1, kind="_BatchDataset", parameters=DatasetParameters(batch_size=size), element=batches, at=at
    )
    stage = StageTime.of(f"Root::Prefetch::{kind}", work, threads, dataset=made)
    return check(
        InputPipeline.of(StageTime.of("Root::Prefetch"), stage, *others),
        Breakdown.of(input=wait, device=20.0 - wait),
        device,
        cores,
        DatasetProperties((made,)),
        options,
    )


sick = example


def healthy() -> Verdict:
    """Batches of 64 numbers."""
    return example(batches=element(""), work=0.1)
