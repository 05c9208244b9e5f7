"""What explains each large part of the step, as lines below the bar of a step."""

from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.step import Account, AccountState
from tfdoctor.report.sentences import PART_LABELS
from tfdoctor.terms import text
from tfdoctor.terms.humanize import location, milliseconds, quantity
from tfdoctor.terms.record import Record
from tfdoctor.terms.units import Unit


class AccountLine(Record):
    """The account of one part of the step."""

    part: str  # of PARTS
    label: str
    state: str  # "named", "necessary" or "unexplained"
    text: str


def lines(diagnosis: Diagnosis) -> tuple[AccountLine, ...]:
    """Return the accounts, where there is more to say than that findings name all of it."""
    # The bars leave the profiler's cost out where that is much; what rules say of work is as it was traced.
    traced = " These are times of traced steps." if diagnosis.steps.untraced_ms else ""
    profiled = frozenset(row.part for row in diagnosis.profile.rows)
    return tuple(
        AccountLine(
            text.name(a.part),
            PART_LABELS.get(a.part, text.name(a.part)),
            a.state.value,
            _said(a, profiled) + (traced if a.state is AccountState.NECESSARY else ""),
        )
        for a in diagnosis.accounts
        if a.state is not AccountState.NAMED
    )


def _said(account: Account, profiled: frozenset[str]) -> str:
    """Return what is said of a part; what was seen in it where the profile has no row of it."""
    named = f"named by {', '.join(map(text.name, account.rules))}" if account.rules else ""
    why = [text.sentence(reason) for reason in account.why]
    if account.state is not AccountState.UNEXPLAINED:
        return " ".join([text.sentence(named), *why]) if named else " ".join(why)
    seen: list[str] = []
    for one in account.seen:
        at = f" at {location(one.at)}" if one.at else ""
        of = " of the stack samples" if one.amount.unit is Unit.RATIO else ""
        seen.append(f"{text.name(one.what)}{at} ({quantity(one.amount)}{of})")
    left = milliseconds(account.unexplained_ms)
    # Of the rest, necessary work may be a part, which the reasons name.
    partly = f"; part of the rest is {named}" if why else f", the rest {named}"
    partly = partly if named else ""
    found = f"Seen in it: {'; '.join(seen)}." if seen else "The recording shows nothing in it."
    told = [] if account.part in profiled else [found]
    return " ".join([f"{left} without a finding{partly}.", *why, *told])
