"""The family of rules about operations that take less after a change."""

from collections.abc import Iterable
from dataclasses import replace

from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.terms.verdict import Bound, Evidence, Finding, Healthy, Remedy, Verdict


def spared(  # noqa: PLR0913 - what is spared, and the words for it
    operations: Operations,
    changed: Iterable[tuple[OperationTime, float]],
    least: float,
    work: str,
    *,
    healthy: str,
    finding: str,
    remedies: Iterable[Remedy],
    more: Iterable[Evidence] = (),
    bound: Bound = Bound.EXPECTED,
    narrows: bool = False,
    alike: int = 0,
) -> Verdict:
    """Judge operations that take less after a change: each with the share of its time that is left.

    ``{part}`` in the sentences is the time that is spared, and its share of the compute time, which has to be at
    least ``least``.
    """
    changed = [(row, left) for row, left in changed if row.ms]
    part = operations.part(sum(row.ms * (1.0 - left) for row, left in changed))
    evidence = (*part.measures(work, least), *more)
    if part.ms < least * part.total_ms:
        return Healthy(summary=healthy.replace("{part}", str(part)), evidence=evidence)
    return Finding(
        summary=finding.replace("{part}", str(part)),
        evidence=evidence,
        remedies=tuple(remedies),
        effects=tuple(replace(row.scaled(left, bound), narrows=narrows) for row, left in changed),
        alike=alike,
    )
