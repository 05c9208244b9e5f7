from tfdoctor.families.kit import *
from tfdoctor.rules.operations.cheaper_operation.cheaper_forms import CheaperForm, CheaperForms, FormKind

__doc__, CODE = page(__file__)

NO_FORM = "No operation of the step has a cheaper form that is known"
PRECONDITIONS = (found(CheaperForms, NO_FORM, lambda known: known.forms),)


class Limits(RuleLimits):
    share: float = share_limit(0.05)
    softmax: float = share_limit(0.5)


def check(known: CheaperForms, operations: Operations, limits: Limits = Limits()) -> Verdict:
    """Add up what the operations take that their cheaper form does not need."""
    times = [(one, sum(row.ms for row in operations.of(one.names))) for one in known.forms]
    worth = sorted(
        ((one, time) for one, time in times if operations.part(time).share >= _least(one, limits)),
        key=lambda of: -of[1] * (1.0 - of[0].left),
    )
    rows = {row.name: (row, one.left) for one, _ in worth for row in operations.of(one.names) if row.ms}
    part = operations.part(sum(row.ms * (1.0 - left) for row, left in rows.values()))
    first = worth[0][0] if worth else known.forms[0]
    longest = max(operations.of(first.names), key=lambda row: row.ms, default=None)
    of = f"{longest.type if longest else 'An operation'}{f' at {location(first.at)}' if first.at else ''}"
    table = Table.of(
        times,
        ("cheaper form", lambda of: of[0].kind.value),
        ("your line", lambda of: of[0].at),
        ("what the graph shows", lambda of: of[0].because),
        ("time of the operations per step", lambda of: ms(of[1])),
    )
    return spared(
        part, limits.share, "that a cheaper form does not need", rows.values(),
        healthy=f"What cheaper forms do not need takes {part}",
        finding=f"{of} has a cheaper form, since {first.because}: this spares at most {part}",
        remedies=[Remedy(one.kind.value, CODE.get(one.kind.page_name, ""), one.at) for one, _ in worth],
        more=[table],
        narrows=True,
        alike=len(worth) - 1,
    )  # fmt: skip


def _least(one: CheaperForm, limits: Limits) -> float:
    """Return the smallest share of the compute time; a loss over sampled classes trains another objective."""
    return limits.softmax if one.kind is FormKind.LARGE_SOFTMAX else 0.0
