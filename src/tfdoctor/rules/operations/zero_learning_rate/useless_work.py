"""What a step computes only for updates that change no weight."""

from tfdoctor.families.kit import *
from tfdoctor.recording import Recording


class UselessWork(Record):
    """The optimizers whose learning rate was zero all the time, and the operations that serve them alone.

    ``updates`` are the optimizers' own operations, which Keras' name scopes tell, ``gradients`` those before whose
    results only these take.
    """

    optimizers: tuple[str, ...]
    at: Location | None = None  # the line that made the first
    updates: tuple[OperationTime, ...] = ()
    gradients: tuple[OperationTime, ...] = ()

    @classmethod
    def measure(
        cls, recording: Recording, operations: Operations | Unavailable, dataflow: Dataflow | Unavailable
    ) -> Self:
        """Follow the graph back from the updates, if there are any.

        Raises:
            Unavailable: the rates of the whole run were not recorded, or the operations of a step.
        """
        manifest = recording.manifest
        if manifest is None or manifest.steps.zero_rates is None:
            raise Unavailable("the recording does not say which learning rates are zero; record again")
        if not manifest.finished:
            raise Unavailable("the run was not recorded to its end, and its learning rates may rise")
        if not (zero := manifest.steps.zero_rates):
            return cls(())
        if isinstance(operations, Unavailable):
            raise operations
        if isinstance(dataflow, Unavailable):
            raise dataflow
        names = {rate.name for rate in zero}
        updates = {row.name for row in operations.rows if row.layer in names}
        serving = dataflow.only_for(one.name for one in dataflow.operations if one.layer in names)
        return cls(
            tuple(sorted(names)),
            next((Places.of(recording)(rate.at) for rate in zero), None),
            tuple(row for row in operations.rows if row.name in updates),
            tuple(row for row in operations.rows if row.name in serving - updates),
        )
