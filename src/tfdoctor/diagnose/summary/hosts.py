"""The hosts of a job compared: their steps, the slow host and the findings by host."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median

from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.hosts import HostFinding, HostRow, Hosts
from tfdoctor.diagnosis.savings import Together
from tfdoctor.facts.scale.hosts import (
    ALPHA,
    MATTERS,
    ClockSkew,
    Comparison,
    HostSteps,
    Lag,
    clock_skew,
    compare,
    match,
)  # fmt: skip
from tfdoctor.terms.humanize import counted, milliseconds, percent
from tfdoctor.terms.record import Record, common
from tfdoctor.terms.verdict import Bound, Finding

NAMED = 3  # Slow hosts that the sentence names; the table lists all

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
    steps: HostSteps | None
    missing: str = ""  # why its steps are unknown


def hosts(examined: Sequence[Examined]) -> Hosts:
    """Compare hosts, at least one of which has a diagnosis."""
    whole = {host.name: host.steps for host in examined if host.steps and host.steps.is_whole}
    matching = match(whole)
    comparison, clocks = compare(whole, matching), clock_skew(whole, matching)
    lag, (shown, why) = comparison.straggler, _choose(examined, whole, comparison)
    return common(
        Hosts,
        clocks,
        rows=tuple(_row(host, clocks) for host in examined),
        shown=shown,
        why_shown=why,
        slowest=". ".join(_slowest(comparison, len(whole))),
        straggler=lag.host if lag else "",
        stage=lag.stage if lag else "",
        lag_ms=lag.ms if lag else None,
        gain_ms=lag.job_gain_ms if lag else None,
        matched_by=str(matching.by) if matching.count else "",
        matched=matching.count,
        findings=_findings(examined, shown),
    )


def _choose(
    examined: Sequence[Examined], whole: Mapping[str, HostSteps], comparison: Comparison
) -> tuple[str, str]:
    """Return the host that is shown in full, and why."""
    if lag := comparison.straggler:
        return lag.host, "the others wait for it"
    if comparison.lags:
        return comparison.lags[0].host, "its own work takes longest"
    stepping = [host for host in examined if host.name in whole]
    if stepping := stepping or [host for host in examined if host.steps]:
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
    if alone is None or gain is None or alone.ms_per_step <= gain:
        return alone
    share = alone.share * gain / alone.ms_per_step
    return replace(alone, ms_per_step=gain, share=share, after_ms={}, bound=Bound.AT_MOST)


def _row(host: Examined, clocks: ClockSkew) -> HostRow:
    if host.diagnosis is None:
        return HostRow(name=host.name, missing=host.missing)
    steps, subject, own_ms, missing = host.diagnosis.steps, host.diagnosis.subject, None, host.missing
    if host.steps:
        own_ms = median(host.steps.own_ms)
        missing = "" if host.steps.is_whole else "its trace does not show the parts of its steps"
    return common(
        HostRow,
        steps,
        name=host.name,
        device=subject.device_name or subject.device or "",
        steps=steps.count,
        own_ms=own_ms,
        starts_late_ms=clocks.late_ms.get(host.name),
        missing=missing,
    )


def _slowest(comparison: Comparison, compared: int) -> Iterator[str]:
    """Say in sentences which host the others wait for, or why that is unknown."""
    steps, lag = counted(comparison.steps, "step"), comparison.straggler
    if compared < 2:  # noqa: PLR2004 - nothing to compare
        yield f"The slowest host is unknown: {counted(compared, 'host has', 'hosts have')} comparable steps"
    elif comparison.too_few:
        needed = f"{comparison.steps_needed} are needed"
        yield f"The slowest host is unknown: {steps} of all hosts were traced, {needed}"
    elif not comparison.lags:
        largest, spread = comparison.largest_ms, comparison.spread_ms
        why = f"is not significant over {steps}"
        if largest <= MATTERS * comparison.step_ms:
            why = f"is below {percent(MATTERS)} of the step"
        elif largest <= spread:
            why = f"is within the spread of the steps ({milliseconds(spread)})"
        most = f"the largest difference in own work, {milliseconds(largest)} per step, {why}"
        yield f"No host is slower than the others: {most}"
    elif lag is None:
        slow = comparison.lags[0]
        yield f"{slow.host} is slower than the other hosts: {_excess(slow)}"
        yield (
            "The trace does not show the others waiting for this host in collectives, so the cost to the job is "
            "unknown"
        )
    else:
        yield f"The other hosts wait for {lag.host}: {_excess(lag)}"
        yield f"The others spend {milliseconds(lag.waited_ms)} more in collectives"
        if lag.gain_ms > 0:
            gain = milliseconds(lag.job_gain_ms)
            yield f"At the speed of the next slowest host, each step saves at most {gain}"
        if others := [other.host for other in comparison.lags if other.holds_up and other is not lag]:
            rest = f" and {len(others) - NAMED} more" if len(others) > NAMED else ""
            yield f"The other hosts also wait for: {', '.join(others[:NAMED])}{rest}"


def _excess(lag: Lag) -> str:
    return (
        f"its own work takes {milliseconds(lag.ms)} more per step (at least {milliseconds(lag.at_least_ms)} "
        f"with {percent(1 - ALPHA)} confidence), mostly {STAGES[lag.stage]} ({milliseconds(lag.stage_ms)})"
    )


def _findings(examined: Sequence[Examined], shown: str) -> tuple[HostFinding, ...]:
    """Return each finding once, with its hosts, as the worst has it; first those of the shown host, in order."""
    by_host = {
        host.name: {r.rule.name: r for r in host.diagnosis.results if isinstance(r.outcome, Finding)}
        for host in examined
        if host.diagnosis
    }
    merged = []
    for name in dict.fromkeys(rule for host in sorted(by_host, key=shown.__ne__) for rule in by_host[host]):
        results = {host: own[name] for host, own in by_host.items() if name in own}
        worst = max(results.values(), key=lambda r: (r.severity or 0, r.saving.ms_per_step if r.saving else 0.0))
        finding = common(
            HostFinding,
            worst.outcome,
            rule=name,
            title=worst.rule.doc.title,
            topic=worst.rule.topic,
            severity=max((r.severity for r in results.values() if r.severity), default=None),
            saving=worst.saving,
            hosts=tuple(results),
            shown=shown in results,
        )
        merged.append(finding)
    mine, others = ([one for one in merged if one.shown is is_shown] for is_shown in (True, False))
    return (*mine, *sorted(others, key=lambda finding: (-(finding.severity or 0), finding.rule)))
