"""The hosts of a job beside each other."""

from collections.abc import Mapping

from tfdoctor.diagnosis.rule import Topic
from tfdoctor.diagnosis.savings import Saving
from tfdoctor.terms.json_form import Count, Ms, Sometimes
from tfdoctor.terms.record import Record, field
from tfdoctor.terms.verdict import Location, SeverityWord


class HostRow(Record, kw_only=True):
    """One of several hosts; times in ms per training step, None where unknown."""

    name: str
    device: str = ""  # "Tesla V100-SXM2-16GB"
    steps: Count = 0
    median_ms: Ms | None = None
    p10_ms: Ms | None = None
    p90_ms: Ms | None = None
    own_ms: Ms | None = None  # median of what it does itself: all but collectives
    breakdown_ms: Mapping[str, Ms] = field(default_factory=dict)
    starts_late_ms: Ms | None = None  # after the median host
    missing: str = ""  # why it is not compared; "" when it is


class HostFinding(Record, kw_only=True):
    """A finding and its hosts; the summary and the saving are those of the most affected host."""

    rule: str
    topic: Topic
    summary: str
    severity: SeverityWord | None
    saving: Saving | None
    hosts: tuple[str, ...]
    shown: bool  # among the results of the host that the report shows
    title: str = ""
    at: Sometimes[Location | None] = None  # on the most affected host
    known: bool | None = None  # whether it is in the baseline; None without one


class Hosts(Record, kw_only=True):
    """Comparison of the hosts of a job; the rest of the diagnosis describes the host in ``shown``."""

    rows: tuple[HostRow, ...]
    shown: str
    why_shown: str
    slowest: str  # which host the others wait for, or why none is named
    straggler: str = ""  # its name, if there is one
    stage: str = ""  # of PARTS: what makes it slow
    lag_ms: Ms | None = None  # of its own work behind the others' median
    gain_ms: Ms | None = None  # what the job gains at most until other hosts are faster too
    matched_by: str = ""  # how steps were matched
    matched: Count = 0  # steps that all compared hosts have
    skew_start_ms: Ms | None = None  # the slowest host minus the median host
    skew_end_ms: Ms | None = None
    skew: str = ""  # what is assumed of the clocks, or why it is unknown
    findings: tuple[HostFinding, ...] = ()
