"""Names and amounts of the account of the run, and what a change saves of it."""

import re

from tfdoctor.diagnosis.work import PhaseRow, RunAccount
from tfdoctor.report.words import is_known
from tfdoctor.terms.humanize import duration, share
from tfdoctor.terms.kinds import Phase

# Of each phase: what it is in a sentence, "30 s (73 %) are <...>"; its colour, as those of the parts of a step
# (training steps as computing, preparing data as waiting for input); its cell in a bar that is read without them.
PHASES = {
    Phase.START: ("the start of Python", "#7f8791", "▖"),
    Phase.IMPORTS: ("imports", "#5b7a99", "▄"),
    Phase.PREPARING: ("preparation of data", "#d55e00", "▓"),
    Phase.CHILDREN: ("waiting for child processes", "#8c8440", "▘"),
    Phase.OWN: ("the script's own work", "#4f86a8", "▙"),
    Phase.BUILDING: ("building of the model", "#b8609a", "▞"),
    Phase.TRACING: ("tracing and compiling", "#8a63c9", "▒"),
    Phase.STEPS: ("training steps", "#0f76b5", "█"),
    Phase.BOUNDARIES: ("work at epoch boundaries", "#b07d0e", "░"),
    Phase.EVALUATION: ("evaluation", "#1f958c", "▀"),
    Phase.PREDICTION: ("prediction", "#5f8f1d", "▚"),
    Phase.SAVING: ("saving", "#a4663f", "▌"),
    Phase.PROFILER: ("tfdoctor's profiler", "#cc4455", "▐"),
    Phase.END: ("the end of the run", "#7b8a7b", "▗"),
    Phase.UNNAMED: ("unnamed", "#69717c", "?"),
}
PHASE_NOUNS, PHASE_COLOURS, GLYPHS = (
    {phase: of_phase[at] for phase, of_phase in PHASES.items()} for at in range(3)
)
# In the name of a function that writes summaries.
SUMMARIES = re.compile(r"(^|\.)(summary(_ops_v2)?|TensorBoard)\.")


def noun(row: PhaseRow) -> str:
    """Return what a phase was in a sentence: what was saved is told by what its lines call."""
    if row.phase is not Phase.SAVING or not row.lines:
        return PHASE_NOUNS[row.phase]
    summaries = {bool(SUMMARIES.search(line.calls)) for line in row.lines}
    if summaries == {True}:
        return "saving of summaries"
    return f"saving of models{', checkpoints and summaries' if True in summaries else ' and checkpoints'}"


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
