"""Findings as GitHub workflow commands, which annotate the lines of a pull request without code scanning.

https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands. A step shows ten annotations
of each level at most, so the most severe ones come first and the others are named in one notice.
"""

from tfdoctor.diagnosis import Diagnosis
from tfdoctor.report.findings import placed
from tfdoctor.terms.verdict import Severity

LEVELS = {Severity.CRITICAL: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}

MOST = 10  # Annotations of a level in one step; the runner drops further ones

_DATA = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"})


def render(diagnosis: Diagnosis) -> str:
    """Return one command for each budget that fails and each finding that the baseline does not know."""
    places = [place for place in placed(diagnosis) if not place.known]
    lines: list[str] = []
    left: list[str] = []
    for level in LEVELS.values():
        mine = [place for place in places if LEVELS[place.severity] == level]
        left += [place.name for place in mine[MOST - 1 :]]
        for place in mine[: MOST - 1]:
            title = f"tfdoctor: {place.name}".translate(_PROPERTY)
            path = place.path.encode(errors="backslashreplace").decode()  # a file's name is any bytes
            at = f"file={path.translate(_PROPERTY)},line={place.line}"
            lines.append(f"::{level} {at},title={title}::{place.message.translate(_DATA)}")
    if left:
        more = f"More findings: {', '.join(left)}.".translate(_DATA)
        lines.append(f"::notice title=tfdoctor::{more}")
    which = "finding" if diagnosis.baseline is None else "new finding"
    return "\n".join(lines or [f"tfdoctor: no {which} to annotate."]) + "\n"
