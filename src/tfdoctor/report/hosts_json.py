"""The comparison of several hosts in the JSON report."""

from collections.abc import Callable
from typing import Any

from tfdoctor.diagnosis import HostFinding, HostRow, Hosts, Saving

Number = Callable[[float | None], float | None]
Object = dict[str, Any]
SavingFields = Callable[[Saving | None], Object | None]


def contract(hosts: Hosts, number: Number, saving: SavingFields) -> Object:
    """Return the hosts as the contract has them; ``number`` and ``saving`` are those of the rest of it."""
    return {
        "rows": [_row(host, number) for host in hosts.rows],
        "shown": hosts.shown,
        "why_shown": hosts.why_shown,
        "slowest": hosts.slowest,
        "straggler": hosts.straggler,
        "stage": hosts.stage,
        "lag_ms": number(hosts.lag_ms),
        "gain_ms": number(hosts.gain_ms),
        "matched_by": hosts.matched_by,
        "matched": hosts.matched,
        "skew_start_ms": number(hosts.skew_start_ms),
        "skew_end_ms": number(hosts.skew_end_ms),
        "skew": hosts.skew,
        "findings": [_finding(finding, saving) for finding in hosts.findings],
    }


def _row(host: HostRow, number: Number) -> Object:
    return {
        "name": host.name,
        "device": host.device,
        "steps": host.steps,
        "median_ms": number(host.median_ms),
        "p10_ms": number(host.p10_ms),
        "p90_ms": number(host.p90_ms),
        "own_ms": number(host.own_ms),
        "breakdown_ms": {part: number(time) for part, time in host.breakdown_ms.items()},
        "starts_late_ms": number(host.starts_late_ms),
        "missing": host.missing,
    }


def _finding(finding: HostFinding, saving: SavingFields) -> Object:
    return {
        "rule": finding.rule,
        "topic": finding.topic.value,
        "severity": finding.severity.name.lower() if finding.severity else None,
        "summary": finding.summary,
        "saving": saving(finding.saving),
        "hosts": list(finding.hosts),
        "shown": finding.shown,
        "known": finding.known,
    }
