"""What a report shows of several hosts: their steps side by side, who is slow, what was found where."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from tfdoctor.diagnosis import Diagnosis, HostFinding, HostRow, Hosts, Result, Together
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.scale.clock_skew import ClockSkew, clock_skew
from tfdoctor.facts.scale.host_matching import MatchedBy, Matching, match
from tfdoctor.facts.scale.host_steps import HostSteps
from tfdoctor.facts.scale.stragglers import ALPHA, MATTERS, Comparison, Lag, compare
from tfdoctor.humanize import counted, milliseconds, percent
from tfdoctor.units import ms
from tfdoctor.verdict import Bound, Finding

NAMED = 3
"""Slow hosts that the sentence names; the table has all."""

MATCHED = MappingProxyType(
    {
        MatchedBy.NUMBER: "steps of the same number in the run",
        MatchedBy.CLOCK: "steps that began at the same time by the hosts' clocks",
        MatchedBy.ORDER: "the order in which they were traced: neither numbers nor clocks say more",
    }
)

STAGES = MappingProxyType(
    {
        "input": "waiting for input",
        "transfer": "copying between host and device",
        "host": "in Python and op dispatch",
        "device": "computing",
        "between": "between its steps",
    }
)


@dataclass(frozen=True, slots=True)
class Examined:
    """A host after its examination; without a diagnosis where its trace cannot be read."""

    name: str
    diagnosis: Diagnosis | None
    steps: HostSteps | None
    missing: str = ""  # why its steps are not known


def hosts(examined: Sequence[Examined]) -> Hosts:
    """Compare hosts of which at least one could be examined."""
    whole = {one.name: one.steps for one in examined if one.steps and one.steps.is_whole}
    matching = match(whole) if len(whole) > 1 else None
    found = compare(whole, matching) if matching else None
    apart = _skew(whole, matching)
    shown, why = _choose(examined, whole, found)
    lag = _straggler(found)
    return Hosts(
        rows=tuple(_row(one, apart) for one in examined),
        shown=shown,
        why_shown=why,
        slowest=_slowest(found, len(whole)),
        straggler=lag.host if lag else "",
        stage=lag.stage if lag else "",
        lag_ms=lag.ms if lag else None,
        gain_ms=lag.job_gain_ms if lag else None,
        matched_by=MATCHED[matching.by] if matching and matching.count else "",
        matched=matching.count if matching else 0,
        skew_start_ms=apart.start_ms if isinstance(apart, ClockSkew) else None,
        skew_end_ms=apart.end_ms if isinstance(apart, ClockSkew) else None,
        skew=apart.basis if isinstance(apart, ClockSkew) else f"unknown, because {apart}",
        findings=_findings(examined, shown),
    )


def _skew(whole: Mapping[str, HostSteps], matching: Matching | None) -> ClockSkew | Unavailable:
    if matching is None or not matching.count:
        return Unavailable("no two hosts have steps that can be compared")
    try:
        return clock_skew(whole, matching)
    except Unavailable as missing:
        return missing


def _straggler(found: Comparison | None) -> Lag | None:
    return next((lag for lag in found.lags if lag.holds_up), None) if found else None


def _choose(
    examined: Sequence[Examined], whole: Mapping[str, HostSteps], found: Comparison | None
) -> tuple[str, str]:
    """Return the host that is shown in full, and why that one."""
    if lag := _straggler(found):
        return lag.host, "it holds up the others"
    if found and found.lags:
        return found.lags[0].host, "its own work takes the longest"
    stepping = [one for one in examined if one.name in whole] or [o for o in examined if o.steps]
    if stepping:
        best = max(stepping, key=_promised)  # the first of equals
        why = "it is the first whose steps are known"
        if _promised(best):
            why = "what was found there saves most"
        elif best is examined[0]:
            why = "it is the first"
        return best.name, f"{why}, and none was told to be slower than the others"
    readable = next(one.name for one in examined if one.diagnosis)
    return readable, "it is the first that can be read; no host's steps are known"


def _promised(one: Examined) -> float:
    """Return the share of its step that a host's findings save together."""
    together = one.diagnosis.together if one.diagnosis else None
    return together.share if together else 0.0


def within_the_job(alone: Together | None, compared: Hosts) -> Together | None:
    """Return what the shown host's findings save of the job's step: hosts in step wait for each other."""
    gain = compared.gain_ms
    if alone is None or not compared.straggler or gain is None or alone.per_step.value <= gain:
        return alone
    share = alone.share * gain / alone.per_step.value
    return replace(alone, per_step=ms(gain), share=share, bound=Bound.AT_MOST)


def _row(one: Examined, apart: ClockSkew | Unavailable) -> HostRow:
    if one.diagnosis is None:
        return HostRow(name=one.name, missing=one.missing)
    steps, subject = one.diagnosis.steps, one.diagnosis.subject
    late = apart.late_ms.get(one.name) if isinstance(apart, ClockSkew) else None
    return HostRow(
        name=one.name,
        device=subject.device_name or subject.device or "",
        steps=steps.count,
        median_ms=steps.median_ms,
        p10_ms=steps.p10_ms,
        p90_ms=steps.p90_ms,
        own_ms=one.steps.median_own_ms if one.steps else None,
        breakdown_ms=steps.breakdown_ms,
        starts_late_ms=late,
        missing=_why_left_out(one),
    )


def _why_left_out(one: Examined) -> str:
    if one.steps is None:
        return one.missing
    return "" if one.steps.is_whole else "its trace does not show what its steps' time went to"


def _slowest(found: Comparison | None, compared: int) -> str:
    """Say which host holds up the others, or why that is not said."""
    if found is None:
        had = counted(compared, "host has", "hosts have")
        return f"Which host is slow is unknown, because {had} steps that can be compared"
    if found.too_few:
        return (
            f"Which host is slow is unknown, because {counted(found.steps, 'step')} of all hosts "
            f"were traced and {found.steps_needed} are needed to tell a slow host from chance"
        )
    if not found.lags:
        return f"No host was told to be slower than the others: {_why_none(found)}"
    lag = _straggler(found)
    return _holding(lag, found) if lag else _lagging(found.lags[0])


def _why_none(found: Comparison) -> str:
    most = f"the largest difference in their own work, {milliseconds(found.largest_ms)} of a step"
    if found.largest_ms <= MATTERS * found.step_ms:
        return f"{most}, is below {percent(MATTERS)} of it"
    if found.largest_ms <= found.spread_ms:
        return f"{most}, is within the spread of the steps ({milliseconds(found.spread_ms)})"
    return f"{most}, is not there often enough in {counted(found.steps, 'step')} to be no chance"


def _holding(lag: Lag, found: Comparison) -> str:
    others = [each.host for each in found.lags if each.holds_up and each.host != lag.host]
    said = (
        f"{lag.host} holds up the others: {_excess(lag)}, while they spend "
        f"{milliseconds(lag.waited_ms)} more than it in collectives"
    )
    if lag.gain_ms > 0:
        gain = milliseconds(lag.job_gain_ms)
        said += f". As fast as the next slowest host, it would shorten every step by at most {gain}"
    if others:
        rest = f" and {len(others) - NAMED} more" if len(others) > NAMED else ""
        said += f". So do, by less, {', '.join(others[:NAMED])}{rest}"
    return said


def _lagging(lag: Lag) -> str:
    return (
        f"{lag.host} has more work of its own than the others: {_excess(lag)}. They are not seen to wait for "
        "it in collectives, so nothing is said of what that costs the job"
    )


def _excess(lag: Lag) -> str:
    return (
        f"its own work takes {milliseconds(lag.ms)} more per step than theirs (with {percent(1 - ALPHA)} "
        f"confidence at least {milliseconds(lag.at_least_ms)}), most of it {STAGES[lag.stage]} "
        f"({milliseconds(lag.stage_ms)})"
    )


def _findings(examined: Sequence[Examined], shown: str) -> tuple[HostFinding, ...]:
    """Say each fault once, with the hosts that have it; those of the shown host first, in its order."""
    found: dict[str, list[tuple[str, Result]]] = {}
    ordered = sorted(examined, key=lambda one: one.name != shown)
    for one in ordered:
        for result in one.diagnosis.results if one.diagnosis else ():
            if isinstance(result.outcome, Finding):
                found.setdefault(result.rule.name, []).append((one.name, result))
    places = {one.name: at for at, one in enumerate(examined)}
    merged = [_merged(results, shown, places) for results in found.values()]
    mine = [finding for finding in merged if finding.shown]
    others = [finding for finding in merged if not finding.shown]
    return (*mine, *sorted(others, key=lambda finding: (-(finding.severity or 0), finding.rule)))


def _merged(
    results: Sequence[tuple[str, Result]], shown: str, places: Mapping[str, int]
) -> HostFinding:
    ordered = sorted(results, key=lambda each: places[each[0]])
    _, worst = max(ordered, key=lambda each: _weight(each[1]))
    summary = worst.outcome.summary if isinstance(worst.outcome, Finding) else ""
    return HostFinding(
        rule=worst.rule.name,
        title=worst.rule.doc.title,
        topic=worst.rule.topic,
        summary=summary,
        severity=max((r.severity for _, r in ordered if r.severity), default=None),
        saving=worst.saving,
        hosts=tuple(name for name, _ in ordered),
        shown=shown in dict(ordered),
    )


def _weight(result: Result) -> tuple[int, float]:
    return (result.severity or 0, result.saving.per_step.value if result.saving else 0.0)
