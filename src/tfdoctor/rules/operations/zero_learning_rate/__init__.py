from tfdoctor.families.kit import *
from tfdoctor.rules.operations.zero_learning_rate.useless_work import UselessWork

__doc__, CODE = page(__file__)


def kept_at_zero(useless: UselessWork) -> Healthy | None:
    """An optimizer was made with a learning rate of 0 and kept it."""
    return (
        None
        if useless.optimizers
        else Healthy(summary="No optimizer was made with a learning rate of 0 and kept it")
    )


PRECONDITIONS = (kept_at_zero,)


class Limits(RuleLimits):
    share: float = share_limit(0.05)


def check(useless: UselessWork, operations: Operations, limits: Limits = Limits()) -> Verdict:
    """Compare the work for updates that change nothing with the compute time."""
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
