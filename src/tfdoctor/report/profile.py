"""The profile of the step as text: what takes most of it, and how far that is from what the hardware can do."""

from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.work import ProfileRow
from tfdoctor.terms import text
from tfdoctor.terms.humanize import counted, location, milliseconds, percent, share
from tfdoctor.terms.record import Record
from tfdoctor.terms.verdict import Stage

REACHED = "of what this hardware allows"  # The heading of the distance from the hardware's rates
# The end of the caption where there are such.
INPUT = " Stages of the input work beside the rest of the step, which waits for the slowest alone."
FASTEST = 0.995  # Share of this run's highest rate from which an operation is the fastest


class ProfileLine(Record, kw_only=True):
    """One row: what it is, its line or layer, its time, and its distance from the hardware's rates."""

    part: str  # of PARTS
    what: str
    where: str
    placed: bool  # where is a line of a file, and no layer
    time: str
    share: str  # of the step, or that it works beside it
    fraction: float  # of the step, at most 1: the width of its bar
    reached: str  # "83 %", "60 % of this run's fastest", or "unknown"
    why: str  # why the hardware's rate is unknown; "" where it is known
    brief: str  # how near in a few words; "" where nothing is known

    @property
    def told(self) -> str:
        """How near it is, and why no more of that is known."""
        return f"{self.reached} ({self.why})" if self.why else self.reached


class ProfileSection(Record, kw_only=True):
    """The profile: what it shows, its rows, and how many shorter ones it leaves out."""

    caption: str
    lines: tuple[ProfileLine, ...]
    rest: str


def section(diagnosis: Diagnosis) -> ProfileSection | None:
    """Return the profile of a diagnosis; None where nothing of the step is known."""
    profile, step_ms = diagnosis.profile, diagnosis.steps.shown_ms
    if not profile.rows or not step_ms:
        return None
    others = counted(profile.omitted, "shorter row")
    took = f", {milliseconds(profile.omitted_ms)} together" if profile.omitted_ms else ""
    return ProfileSection(
        caption=f"What takes most of a step of {milliseconds(step_ms)}: lines of Python, operations by type and "
        "line, stages of the input. The last column compares the least time that the bytes and FLOPs need at the "
        "hardware's rates with the measured one."
        + (INPUT if any(row.part == Stage.INPUT for row in profile.rows) else ""),
        lines=tuple(map(_line, profile.rows)),
        rest=f"{others.capitalize()} left out{took}." if profile.omitted else "",
    )


def _line(row: ProfileRow) -> ProfileLine:
    reached, brief = _reached(row)
    return ProfileLine(
        part=text.name(row.part),
        what=text.name(row.what, 80),
        where=location(row.at) or text.name(row.layer, 60),
        placed=row.at is not None,
        time=milliseconds(row.ms),
        share="beside it" if row.beside else share(row.share),
        fraction=0.0 if row.beside else min(1.0, row.share),
        reached=reached,
        why="" if row.attained is not None else text.prose(row.unknown),
        brief=brief,
    )


def _reached(row: ProfileRow) -> tuple[str, str]:
    """Return how near a row is to the hardware's rates, else to this run's highest, and the same in a few words."""
    if row.attained is not None:
        return percent(row.attained), f"{percent(row.attained)} of the hardware"
    if row.of_fastest is None:
        return "unknown", ""
    if row.of_fastest >= FASTEST:
        return "this run's fastest", "the fastest"
    reached = percent(row.of_fastest)
    return f"{reached} of this run's fastest", f"{reached} of the fastest"


def heaviest(diagnosis: Diagnosis) -> str:
    """Return the row that takes most, with its distance from the hardware's rates, as a sentence; "" of none."""
    row = next((row for row in diagnosis.profile.rows if not row.beside), None)
    if row is None:
        return ""
    line = _line(row)
    where = f" at {line.where}" if line.placed else ""
    takes = f"Most of a step takes {line.what}{where}: {line.time} ({line.share})"
    if row.attained is not None:
        return f"{takes}, at {line.reached} of what this hardware allows."
    return f"{takes}, {line.told}."
