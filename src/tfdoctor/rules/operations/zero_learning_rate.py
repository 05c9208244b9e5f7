from tfdoctor.families.kit import *
from tfdoctor.recording import Recording

__doc__, CODE = page(__file__)


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
    def measure(cls, recording: Recording, operations: Operations, dataflow: Dataflow) -> Self:
        """Follow the graph back from the updates.

        Raises:
            Unavailable: the rates of the whole run were not recorded.
        """
        manifest = recording.manifest
        if manifest is None or manifest.steps.zero_rates is None:
            raise Unavailable("the recording does not say which learning rates are zero; record again")
        if not manifest.finished:
            raise Unavailable("the run was not recorded to its end, and its learning rates may rise")
        zero = manifest.steps.zero_rates
        names = {rate.name for rate in zero}
        updates = {row.name for row in operations.rows if row.layer in names}
        serving = dataflow.only_for(one.name for one in dataflow.operations if one.layer in names)
        return cls(
            tuple(sorted(names)),
            next((Places.of(recording)(rate.at) for rate in zero), None),
            tuple(row for row in operations.rows if row.name in updates),
            tuple(row for row in operations.rows if row.name in serving - updates),
        )


class Limits(RuleLimits):
    share: float = share_limit(0.05)


def check(useless: UselessWork, operations: Operations, limits: Limits = Limits()) -> Verdict:
    """Compare the work for updates that change nothing with the compute time."""
    if not useless.optimizers:
        return Healthy(summary="No optimizer was made with a learning rate of 0 and kept it")
    rows, names = (*useless.updates, *useless.gradients), ", ".join(useless.optimizers)
    part = operations.part(sum(row.ms for row in rows))
    return judged(
        Measure.share("share of the compute time for updates without effect", part.share, limits.share),
        Measure("gradients that only these updates use, per step", ms(sum(row.ms for row in useless.gradients))),
        Measure("updates with a learning rate of 0, per step", ms(sum(row.ms for row in useless.updates))),
        Measure("operations of both per step", count(sum(row.calls for row in rows))),
        healthy=f"Updates by {names}, at a rate of 0, take {part}",
        finding=f"{names} has a learning rate of 0: its gradients and updates take {part}",
        remedies=[Remedy("Take gradients only for the weights that train", CODE["trained"], useless.at)],
        effects=(row.scaled(0.0) for row in rows if row.ms),
    )
