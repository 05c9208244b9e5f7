"""Several hosts in the JSON report."""

from collections.abc import Callable
from typing import Any

from tfdoctor.diagnosis import HostFinding, HostRow, Hosts

Number = Callable[[float | None], float | None]
Object = dict[str, Any]


def contract(hosts: Hosts, number: Number, saving: Callable[..., Object | None]) -> Object:
    """Return the hosts as the contract has them; numbers and savings are spelled as elsewhere in it."""

    def row(host: HostRow) -> Object:
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

    def finding(found: HostFinding) -> Object:
        return {
            "rule": found.rule,
            "topic": found.topic.value,
            "severity": found.severity.name.lower() if found.severity else None,
            "summary": found.summary,
            "saving": saving(found.saving),
            "hosts": list(found.hosts),
            "shown": found.shown,
        }

    return {
        "rows": [row(host) for host in hosts.rows],
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
        "findings": [finding(found) for found in hosts.findings],
    }
