from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)

# The scope of a replica beyond the first (TensorFlow, distribute/mirrored_run.py).
COPY = re.compile(r"(?:^|/)replica_[1-9]\d*/")
# The scope in which the variables of such a replica are updated (distribute/mirrored_strategy.py).
UPDATE = re.compile(r"(?:^|/)update_[1-9]\d*(?:_\d+)?/")
COLLECTIVE = "Collective"  # How the types of operations begin that replicas exchange tensors by
# Largest number of values in an operation that a batch of several replicas hardly slows; as in small-batch.
VALUES = 10_000
EACH_MS = 0.02  # Longest call of such an operation where its tensors are unknown; as in small-batch

ONE_EACH = Remedy(
    "Train one replica on each physical device",
    CODE["one-each"],
    edit_id="one-replica",
    changes="one replica trains on the whole batch",
)
GROWS = (
    "{} share one device, but {} of the compute time of the further ones is in operations on large tensors, which "
    "several may run side by side: time the program without the strategy"
)


class Limits(RuleLimits):
    share: float = share_limit(0.05)
    fixed: float = share_limit(0.5)


class CopiedWork(Record):
    """What the replicas beyond the first compute, and the packing around the exchange.

    ``fixed`` takes hardly longer for one replica with the whole batch, ``growing`` does: one replica takes over
    the work of these. ``updates`` change the variables of a replica, whatever its batch.
    """

    fixed: tuple[OperationTime, ...] = ()
    growing: tuple[OperationTime, ...] = ()
    updates: tuple[OperationTime, ...] = ()
    packing: tuple[OperationTime, ...] = ()

    @classmethod
    def measure(cls, operations: Operations, program: Program) -> Self:
        """Sort the operations by the scopes that TensorFlow gives to replicas."""
        copies = [row for row in operations.rows if COPY.search(row.name)]
        if not copies:
            raise Unavailable("the trace names no operation of a second replica")
        fixed = tuple(row for row in copies if is_small(row, VALUES, EACH_MS))
        known = {one.name: one for one in program.training}
        exchange = {one.name for one in known.values() if one.type.startswith(COLLECTIVE)}
        around = {source for name in exchange for source in known[name].sources}  # what makes its operands
        around |= {one.name for one in known.values() if exchange.intersection(one.sources)}  # what takes it apart
        return cls(
            fixed,
            tuple(row for row in copies if row not in fixed),
            tuple(row for row in operations.rows if UPDATE.search(row.name)),
            tuple(row for row in operations.rows if row.name in around - exchange),
        )

    @property
    def spared(self) -> tuple[OperationTime, ...]:
        """The operations that a single replica does without."""
        return (*self.fixed, *self.updates, *self.packing)

    @property
    def fixed_share(self) -> float:
        """The share of the copies' time that does not grow with the batch, 0 to 1."""
        fixed, growing = (sum(row.ms for row in rows) for rows in (self.fixed, self.growing))
        return fixed / (fixed + growing) if fixed + growing else 0.0


def check(
    replicas: Replicas, breakdown: Breakdown, copied: CopiedWork | None, overhead: PythonOverhead | None,
    limits: Limits = Limits(),
) -> Verdict:  # fmt: skip
    """Compare the work of the further replicas, and of combining them, with the step."""
    if replicas.count == 1:
        return NotApplicable(reason="one replica trains")
    if replicas.sharing is None:
        return NotApplicable(reason="the recording does not say on which device each replica computes")
    if not replicas.share_a_device:
        return Healthy(summary="Each replica has a device of its own")
    if copied is None:
        return NotApplicable(reason="the trace names no operation of a second replica")
    # A single replica does without these; the host's time for the operations goes with them.
    exchange = Effect.of_stages({Stage.COLLECTIVE: breakdown[Stage.COLLECTIVE]}, StepWork.EXCHANGE)
    entry = {Stage.HOST: overhead.edges_ms} if overhead else {}
    entries = Effect.of_stages(entry, StepWork.STEP_ENTRY, 1.0 / replicas.sharing)
    effects = [*(row.scaled(0.0, Bound.AT_MOST) for row in copied.spared if row.ms), *exchange, *entries]
    share = breakdown.share(sum((1.0 - effect.scales) * effect.of.value for effect in effects if effect.of))
    named = counted(replicas.sharing, "replica")
    if share >= limits.share and copied.fixed_share < limits.fixed:
        return NotApplicable(reason=GROWS.format(named, percent(1.0 - copied.fixed_share)))
    further = (*copied.fixed, *copied.growing)
    calls = sum(row.calls for row in (*further, *copied.updates))
    small = "share of the further replicas' compute time on small tensors"
    return judged(
        Measure("replicas on one device", count(replicas.sharing)),
        Measure.share("share of the step for having several", share, limits.share),
        Measure("operations per step of the further replicas", count(calls)),
        Measure("compute time of the further replicas, per step", ms(sum(row.ms for row in further))),
        Measure.share(small, copied.fixed_share, limits.fixed),
        Measure("updates of the further replicas' variables, per step", ms(sum(row.ms for row in copied.updates))),
        Measure("waiting for the exchange, per step", ms(breakdown[Stage.COLLECTIVE])),
        healthy=f"{named} on one device cost {percent(share)} of {breakdown.each_step}",
        finding=f"{named} share one device: {percent(share)} of {breakdown.each_step} is for having several",
        remedies=[replace(ONE_EACH, at=replicas.at)],
        effects=effects,
    )
