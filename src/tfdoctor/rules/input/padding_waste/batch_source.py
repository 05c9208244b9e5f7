"""What makes the batches of the training, and on which line."""

from tfdoctor.families.kit import *
from tfdoctor.recording import Recording


class BatchMaker(Enum):
    """What makes batches."""

    DATASET = auto()  # a tf.data pipeline
    ARRAYS = auto()  # fit, from arrays
    GIVEN = auto()  # Python that fit is given: a PyDataset, a generator, a data loader
    LOOP = auto()  # Python in the script's own loop


# By what the user gives to fit; Keras 2 is recorded by its adapters' classes. Others are datasets.
GIVEN = (InputKind.PY_DATASET, InputKind.GENERATOR, InputKind.TORCH, InputKind.GRAIN)
MAKERS = {
    **dict.fromkeys((InputKind.ARRAYS, "TensorLikeDataAdapter"), BatchMaker.ARRAYS),
    **dict.fromkeys((*GIVEN, "KerasSequenceAdapter", "GeneratorDataAdapter"), BatchMaker.GIVEN),
    "": BatchMaker.LOOP,
}


class BatchSource(Record):
    """What makes the batches; ``at`` is the line of a dataset's batch(), of fit or of the loop's training call."""

    maker: BatchMaker
    at: Location | None = None

    @classmethod
    def measure(cls, recording: Recording, program: Program) -> Self:
        """Tell it from what fit is given, or from the arguments of the loop's calls."""
        maker, place = MAKERS.get(program.input_kind, BatchMaker.DATASET), Places.of(recording)
        if maker is BatchMaker.GIVEN:
            return cls(maker, place(program.settings.fit_at))
        if maker is BatchMaker.LOOP:
            python = recording.program.python if recording.program else None
            return cls(maker, place(python.fed.at if python and python.fed else None))
        return cls(maker, next((data.at for data in program.feeding if "Batch" in data.kind and data.at), None))
