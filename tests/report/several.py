"""Several hosts to render: one that the others wait for, and others that cannot be compared."""

from tfdoctor.diagnosis.hosts import HostFinding, HostRow, Hosts
from tfdoctor.diagnosis.rule import Topic
from tfdoctor.diagnosis.savings import Saving
from tfdoctor.terms.verdict import Bound, Severity


def row(name: str, own: float, step: float = 52.0, device: str = "Tesla T4") -> HostRow:
    return HostRow(
        name=name,
        device=device,
        steps=20,
        median_ms=step,
        p10_ms=step - 1,
        p90_ms=step + 2,
        own_ms=own,
        breakdown_ms={"input": own - 6, "device": 6.0, "collective": step - own},
        starts_late_ms=0.2,
    )


def finding(rule: str, hosts: tuple[str, ...], *, shown: bool) -> HostFinding:
    saving = Saving(ms_per_step=20.0, share=0.4, bound=Bound.EXPECTED, how="The model says so.")
    return HostFinding(
        rule=rule,
        title="A fault",
        topic=Topic.INPUT,
        summary="each step waits 40.0 ms for its input",
        severity=Severity.CRITICAL,
        saving=saving,
        hosts=hosts,
        shown=shown,
    )


def hosts(prefix: str = "worker-", count: int = 3) -> Hosts:
    """Return a chief and workers of whom the second is slow, and a parameter server."""
    names = [f"{prefix}{number}" for number in range(count)]
    rows = [row(name, 46.0 if name == names[1] else 12.0) for name in names]
    server = HostRow(name=f"{prefix}ps", missing="it ran no training step")
    return Hosts(
        rows=(*rows, server),
        shown=names[1],
        why_shown="the others wait for it",
        slowest=f"The other hosts wait for {names[1]}: its own work takes 34.0 ms more per step",
        straggler=names[1],
        stage="input",
        lag_ms=34.0,
        gain_ms=33.0,
        matched_by="steps of the same number in the run",
        matched=20,
        skew_start_ms=0.4,
        skew_end_ms=0.3,
        skew="all hosts ran on one machine and share its clock",
        findings=(
            finding("input-bound", (names[1],), shown=True),
            finding("unfused-batch-norm", tuple(names[::2]), shown=False),
        ),
    )
