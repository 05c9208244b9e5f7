"""The hosts of a job compared: their steps, the slow host and the findings by host."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median

from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.hosts import HostFinding, HostRow, Hosts
from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.savings import Together
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.scale import hosts as scale
from tfdoctor.terms.humanize import counted, milliseconds, percent
from tfdoctor.terms.record import Record
from tfdoctor.terms.verdict import Bound, Finding

NAMED = 3  # Slow hosts that the sentence names; the table lists all

MATCHED = {
    scale.MatchedBy.NUMBER: "step number",
    scale.MatchedBy.CLOCK: "start time by the hosts' clocks",
    scale.MatchedBy.ORDER: "order in the traces (step numbers and clocks are unknown)",
}
STAGES = {
    "input": "waiting for input",
    "transfer": "copying between host and device",
    "host": "in Python and op dispatch",
    "device": "computing",
    "between": "between steps",
}


class Examined(Record):
    """A host with its diagnosis; None where its trace cannot be read."""

    name: str
    diagnosis: Diagnosis | None
    steps: scale.HostSteps | None
    missing: str = ""  # why its steps are unknown


def hosts(examined: Sequence[Examined]) -> Hosts:
    """Compare hosts, at least one of which has a diagnosis."""
    whole = {host.name: host.steps for host in examined if host.steps and host.steps.is_whole}
    matching = scale.match(whole) if len(whole) > 1 else None
    comparison = scale.compare(whole, matching) if matching else None
    clocks: scale.ClockSkew | Unavailable = Unavailable("no two hosts have comparable steps")
    if matching and matching.count:
        try:
            clocks = scale.clock_skew(whole, matching)
        except Unavailable as missing:
            clocks = missing
    lag, known = _straggler(comparison), None if isinstance(clocks, Unavailable) else clocks
    shown, why = _choose(examined, whole, comparison)
    compared = Hosts(
        rows=tuple(_row(host, known) for host in examined),
        shown=shown,
        why_shown=why,
        slowest=_slowest(comparison, len(whole)),
        matched_by=MATCHED[matching.by] if matching and matching.count else "",
        matched=matching.count if matching else 0,
        findings=_findings(examined, shown),
        skew=known.basis if known else f"unknown ({clocks})",
    )
    if lag:
        compared = replace(compared, straggler=lag.host, stage=lag.stage, lag_ms=lag.ms, gain_ms=lag.job_gain_ms)
    return replace(compared, skew_start_ms=known.start_ms, skew_end_ms=known.end_ms) if known else compared


def _straggler(comparison: scale.Comparison | None) -> scale.Lag | None:
    lags = comparison.lags if comparison else ()
    return next((lag for lag in lags if lag.holds_up), None)


def _choose(
    examined: Sequence[Examined], whole: Mapping[str, scale.HostSteps], comparison: scale.Comparison | None
) -> tuple[str, str]:
    """Return the host that is shown in full, and why."""
    if lag := _straggler(comparison):
        return lag.host, "the others wait for it"
    if comparison and comparison.lags:
        return comparison.lags[0].host, "its own work takes longest"
    stepping = [host for host in examined if host.name in whole]
    stepping = stepping or [host for host in examined if host.steps]
    if stepping:
        best = max(stepping, key=_saving)  # the first of equals
        first = "it is the first" if best is examined[0] else "it is the first with known steps"
        why = "its findings save most" if _saving(best) else first
        return best.name, f"{why}, and no host is slower than the others"
    readable = next(host.name for host in examined if host.diagnosis)
    return readable, "it is the first host that can be read, and no host has known steps"


def _saving(host: Examined) -> float:
    together = host.diagnosis.together if host.diagnosis else None
    return together.share if together else 0.0


def within_the_job(alone: Together | None, compared: Hosts) -> Together | None:
    """Return what the findings of the shown host save of the job's step, for which all hosts wait."""
    gain = compared.gain_ms
    if alone is None or not compared.straggler or gain is None or alone.ms_per_step <= gain:
        return alone
    share = alone.share * gain / alone.ms_per_step
    return replace(alone, ms_per_step=gain, share=share, after_ms={}, bound=Bound.AT_MOST)


def _row(host: Examined, clocks: scale.ClockSkew | None) -> HostRow:
    if host.diagnosis is None:
        return HostRow(name=host.name, missing=host.missing)
    steps, subject = host.diagnosis.steps, host.diagnosis.subject
    missing = host.missing
    if host.steps:
        missing = "" if host.steps.is_whole else "its trace does not show the parts of its steps"
    return HostRow(
        name=host.name,
        device=subject.device_name or subject.device or "",
        steps=steps.count,
        median_ms=steps.median_ms,
        p10_ms=steps.p10_ms,
        p90_ms=steps.p90_ms,
        own_ms=median(host.steps.own_ms) if host.steps else None,
        breakdown_ms=steps.breakdown_ms,
        starts_late_ms=clocks.late_ms.get(host.name) if clocks else None,
        missing=missing,
    )


def _slowest(comparison: scale.Comparison | None, compared: int) -> str:
    """Say which host the others wait for, or why that is unknown."""
    if comparison is None:
        having = counted(compared, "host has", "hosts have")
        return f"The slowest host is unknown: {having} comparable steps"
    if comparison.too_few:
        return (
            f"The slowest host is unknown: {counted(comparison.steps, 'step')} of all hosts "
            f"were traced, {comparison.steps_needed} are needed"
        )
    if not comparison.lags:
        return f"No host is slower than the others: {_why_none(comparison)}"
    lag = _straggler(comparison)
    if lag:
        return _holding(lag, comparison)
    slow = comparison.lags[0]
    return (
        f"{slow.host} is slower than the other hosts: {_excess(slow)}. The trace does not show the others waiting "
        "for this host in collectives, so the cost to the job is unknown"
    )


def _why_none(comparison: scale.Comparison) -> str:
    largest = comparison.largest_ms
    most = f"the largest difference in own work, {milliseconds(largest)} per step"
    if largest <= scale.MATTERS * comparison.step_ms:
        return f"{most}, is below {percent(scale.MATTERS)} of the step"
    if largest <= comparison.spread_ms:
        return f"{most}, is within the spread of the steps ({milliseconds(comparison.spread_ms)})"
    return f"{most}, is not significant over {counted(comparison.steps, 'step')}"


def _holding(lag: scale.Lag, comparison: scale.Comparison) -> str:
    sentences = [
        f"The other hosts wait for {lag.host}: {_excess(lag)}",
        f"The others spend {milliseconds(lag.waited_ms)} more in collectives",
    ]
    if lag.gain_ms > 0:
        gain = milliseconds(lag.job_gain_ms)
        sentences.append(f"At the speed of the next slowest host, each step saves at most {gain}")
    others = [other.host for other in comparison.lags if other.holds_up and other.host != lag.host]
    if others:
        rest = f" and {len(others) - NAMED} more" if len(others) > NAMED else ""
        sentences.append(f"The other hosts also wait for: {', '.join(others[:NAMED])}{rest}")
    return ". ".join(sentences)


def _excess(lag: scale.Lag) -> str:
    return (
        f"its own work takes {milliseconds(lag.ms)} more per step (at least {milliseconds(lag.at_least_ms)} "
        f"with {percent(1 - scale.ALPHA)} confidence), mostly {STAGES[lag.stage]} ({milliseconds(lag.stage_ms)})"
    )


def _findings(examined: Sequence[Examined], shown: str) -> tuple[HostFinding, ...]:
    """Return each finding once, with its hosts; first those of the shown host, in its order."""
    by_rule: dict[str, dict[str, Result]] = defaultdict(dict)
    for host in sorted(examined, key=lambda host: host.name != shown):
        for result in host.diagnosis.results if host.diagnosis else ():
            if isinstance(result.outcome, Finding):
                by_rule[result.rule.name][host.name] = result
    merged = [
        _merged({one.name: of[one.name] for one in examined if one.name in of}, shown) for of in by_rule.values()
    ]
    mine, others = ([one for one in merged if one.shown is is_shown] for is_shown in (True, False))
    return (*mine, *sorted(others, key=lambda finding: (-(finding.severity or 0), finding.rule)))


def _merged(results: Mapping[str, Result], shown: str) -> HostFinding:
    """Return a finding as the host has it where it is worst."""
    worst = max(results.values(), key=lambda r: (r.severity or 0, r.saving.ms_per_step if r.saving else 0.0))
    finding = worst.outcome if isinstance(worst.outcome, Finding) else None
    return HostFinding(
        rule=worst.rule.name,
        title=worst.rule.doc.title,
        topic=worst.rule.topic,
        summary=finding.summary if finding else "",
        severity=max((r.severity for r in results.values() if r.severity), default=None),
        saving=worst.saving,
        hosts=tuple(results),
        shown=shown in results,
        at=finding.at if finding else None,
    )
