"""The operations that only check values, and what Python does for them."""

from tfdoctor.families.kit import *
from tfdoctor.recording import Recording

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
