"""Findings as GitHub workflow commands, which annotate the lines of a pull request without code scanning.

https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands. A step shows ten annotations
of each level at most, so the most severe ones come first and the others are named in one notice.
"""

from collections import defaultdict

from tfdoctor.diagnosis import Diagnosis
from tfdoctor.report.places import Placed, placed, placed_budgets
from tfdoctor.terms.verdict import Severity

STREAM = True
"""The runner reads the commands from the output of the step."""

LEVELS = {Severity.CRITICAL: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}

MOST = 10
"""Annotations of a level in one step; the runner drops further ones."""

_DATA = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"})


def render(diagnosis: Diagnosis) -> str:
    """Return one command for each budget that fails and each finding that the baseline does not know."""
    by_level: dict[str, list[Placed]] = defaultdict(list)
    new = [finding for finding in placed(diagnosis) if not finding.known]
    places: tuple[Placed, ...] = (*placed_budgets(diagnosis), *new)
    for finding in places:
        by_level[LEVELS[finding.severity]].append(finding)
    lines = [
        _command(level, finding)
        for level in LEVELS.values()
        for finding in by_level[level][: MOST - 1]
    ]
    left = [finding for level in LEVELS.values() for finding in by_level[level][MOST - 1 :]]
    if left:
        names = ", ".join(finding.name for finding in left)
        lines.append(f"::notice title=tfdoctor::{f'More findings: {names}.'.translate(_DATA)}")
    which = "finding" if diagnosis.baseline is None else "new finding"
    return "\n".join(lines or [f"tfdoctor: no {which} to annotate."]) + "\n"


def _command(level: str, finding: Placed) -> str:
    title = f"tfdoctor: {finding.name}".translate(_PROPERTY)
    path = finding.path.translate(_PROPERTY)
    return f"::{level} file={path},line={finding.line},title={title}::{finding.message.translate(_DATA)}"
