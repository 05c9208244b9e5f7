"""Names and amounts of the account of the run."""

import re
from types import MappingProxyType

from tfdoctor.diagnosis import PhaseRow, RunAccount
from tfdoctor.report.words import is_known
from tfdoctor.terms.humanize import duration, share
from tfdoctor.terms.kinds import Phase

# The phases in a sentence: "30 s (73 %) are <...>".
PHASE_NOUNS = MappingProxyType(
    {
        Phase.START: "the start of Python",
        Phase.IMPORTS: "imports",
        Phase.PREPARING: "preparation of data",
        Phase.CHILDREN: "waiting for child processes",
        Phase.OWN: "the script's own work",
        Phase.BUILDING: "building of the model",
        Phase.TRACING: "tracing and compiling",
        Phase.STEPS: "training steps",
        Phase.BOUNDARIES: "work at epoch boundaries",
        Phase.EVALUATION: "evaluation",
        Phase.PREDICTION: "prediction",
        Phase.SAVING: "saving",
        Phase.PROFILER: "tfdoctor's profiler",
        Phase.END: "the end of the run",
        Phase.UNNAMED: "unnamed",
    }
)


def noun(row: PhaseRow) -> str:
    """Return what a phase was in a sentence: what was saved is told by what its lines call."""
    if row.phase is not Phase.SAVING or not row.lines:
        return PHASE_NOUNS[row.phase]
    summaries = {bool(SUMMARIES.search(line.calls)) for line in row.lines}
    if summaries == {True}:
        return "saving of summaries"
    return f"saving of models{', checkpoints and summaries' if True in summaries else ' and checkpoints'}"


# In the name of a function that writes summaries.
SUMMARIES = re.compile(r"(^|\.)(summary(_ops_v2)?|TensorBoard)\.")


def times(run: RunAccount) -> dict[Phase, float]:
    """Return the phases that take time, in ms and in their order."""
    return {row.phase: row.ms for row in run.rows if is_known(row.ms) and row.ms > 0}


def whole_ms(run: RunAccount) -> float:
    """Return the time that the shares are of: all phases together, which is the run's."""
    return sum(times(run).values())


def amount(run: RunAccount, time_ms: float) -> str:
    """Return a time with its share of the run: "72 s (55 %)"."""
    whole = whole_ms(run)
    return f"{duration(time_ms)} ({share(time_ms / whole)})" if whole else duration(time_ms)
