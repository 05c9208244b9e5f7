from tfdoctor.families.kit import *
from tfdoctor.recording import Recording

__doc__, CODE = page(__file__)

# Types of operations that look for NaN and infinity, or write tensors for TensorFlow's debugger.
NUMERICS = frozenset(("Assert", "CheckNumerics", "CheckNumericsV2", "DebugNumericSummaryV2", "DebugIdentityV2"))
# The name scope of tf.debugging.assert_*: its comparison, its reduction and its Assert.
ASSERTION = re.compile(r"(?:^|/)assert_\w+/")
PYTHON = "EagerLocalExecute: "  # How operations that Python runs one by one begin in the trace


class DebugChecks(Record, OperationRows):
    """The operations that only check values; ms per training step.

    ``python_ms`` is Python's time for checks of single operations, without the checks themselves; ``starting_ms``
    is the host's time to start the checks within graphs: their part, by number, of what Python does not take.
    """

    rows: tuple[OperationTime, ...]
    python_ms: float = 0.0
    starting_ms: float = 0.0
    everywhere: bool = False  # enable_check_numerics is on, as recorded or as its operations show
    at: Location | None = None  # the line that switched it on

    @classmethod
    def measure(
        cls, operations: Operations, breakdown: Breakdown, steps: Steps, recording: Recording,
        program: Program | None,
    ) -> Self:  # fmt: skip
        """Find the checks among the operations, and share out the host's time."""
        rows = tuple(row for row in operations.rows if row.type in NUMERICS or ASSERTION.search(row.name))
        aids = (program.settings.debugging if program else None) or ()
        aid = next((aid for aid in aids if aid.aid == "check_numerics"), None)  # enable_check_numerics
        host_ms, traced, python_ms = breakdown[Stage.HOST], sum(step.calls for step in steps.steps), 0.0
        if aid and traced:
            single = sum(row.ms for row in rows if any(name.startswith(PYTHON) for name in row.ran))
            python_ms = min(host_ms, max(0.0, aid.ms / traced - single))
        calls = sum(row.calls for row in operations.rows)
        part = sum(row.calls for row in rows) / calls if calls else 0.0
        everywhere = aid is not None or any(row.type == "DebugNumericSummaryV2" for row in rows)
        starting_ms, at = part * (host_ms - python_ms), Places.of(recording)(aid.at) if aid else None
        return cls(rows, python_ms, starting_ms, everywhere=everywhere, at=at)


PRECONDITIONS = (found(DebugChecks, lambda checks: checks.rows, "No operation of the step only checks values"),)


class Limits(RuleLimits):
    share: float = share_limit(0.02)


def check(checks: DebugChecks, breakdown: Breakdown, limits: Limits = Limits()) -> Verdict:
    """Add up the time of the checks and of the host for them."""
    host_ms = checks.python_ms + checks.starting_ms
    taken = checks.ms + host_ms
    share = taken / breakdown.step_ms if breakdown.step_ms else 0.0
    summary = f"{counted(round(checks.calls), 'operation')} that only check values take {milliseconds(taken)}"
    at = next((row.at for row in checks.rows if row.at), None)
    remedy = Remedy("Remove the checks from the training function", CODE["rarely"], at)
    if checks.everywhere:
        remedy = Remedy("Remove tf.debugging.enable_check_numerics()", CODE["flag"], checks.at)
    return judged(
        Measure.share("share of the step in checks of values", share, limits.share),
        Measure("operations per step that check values", count(checks.calls)),
        Measure("time in operations that check values, per step", ms(checks.ms)),
        Measure("time of Python in checks, per step", ms(checks.python_ms)),
        Measure("time of the host to start checks in graphs, per step", ms(checks.starting_ms)),
        healthy=f"{summary} of each step",
        finding=f"{summary} per step ({percent(share)})",
        remedies=(remedy,),
        effects=(
            *(row.scaled(0.0) for row in checks.rows if row.ms),
            *Effect.of_stages({Stage.HOST: host_ms}, StepWork.CHECKS, bound=Bound.EXPECTED),
        ),
    )
