"""Cases of a rule: all that is said of each stands in ``golden/NAME_OF_RULE.txt``.

    @golden_cases
    def test_verdicts(told: Cases) -> None:
        told["a tenth of the step is reported"] = example(share=0.1), example(share=0.099)
        told["what others explain is left to them"] = example(share=0.3, subjects=frozenset(("the subject",)))
        told[...] = example(share=0.3, left=0.0)  # belongs to the case above

The first two are those of the rule's page, ``sick`` and ``healthy``. Of the first finding all is written, and of
later ones what is not as in it; so of what is healthy. A function with another name has a file with that name as
well, and begins anew, without those two.
"""

import inspect
from types import EllipsisType

from tests.kit import *
from tfdoctor.facts.chart import Unavailable
from tfdoctor.terms.record import Record
from tfdoctor.terms.units import Quantity, Unit
from tfdoctor.terms.verdict import *

Compare = Callable[[str, str], None]
Entry = tuple[str, str]  # what it is, and what is said
FILES = set[str]()
"""All that tests compare with."""


class Cases:
    """What is said of each case, by its name; a function is called, and may say that something is unavailable."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.first: dict[type, dict[str, str]] = {}
        self.longer: dict[str, str] = {}  # texts of several lines, and where they stand

    def __setitem__(self, name: str | EllipsisType, value: object) -> None:
        assert name not in self.texts, f"two cases are called {name!r}"
        case = next(reversed(self.texts)) if isinstance(name, EllipsisType) else name
        known = [self.texts[case]] if case in self.texts else []
        self.texts[case] = ""
        self.texts[case] = "\n".join([*known, *self._lines(value)]) or "nothing"

    def _lines(self, value: object) -> Iterator[str]:
        match value:
            case Finding() | Healthy():
                entries = distinct(said_of(value))
                known = self.first.setdefault(type(value), {})
                yield f"{type(value).__name__.lower()}: {value.summary}"
                yield from (f"  {key}{self._once(said)}" for key, said in entries.items() if known.get(key) != said)
                if gone := [key.partition(" | ")[0].rstrip(": ") for key in known if key not in entries]:
                    yield f"  without {'; '.join(gone)}"
                self.first[type(value)] = known or entries
            case NotApplicable(reason=reason):
                yield f"not applicable: {reason}"
            case Unavailable():
                yield f"unavailable: {value}"
            case tuple() | list():
                yield from (line for one in value for line in self._lines(one))
            case _:
                yield from self._lines(answer(value)) if callable(value) else [shown(value) or "nothing"]

    def _once(self, said: str) -> str:
        """Return what is said, or where it stands if it is long and does so already."""
        case = next(reversed(self.texts))
        known = self.longer.setdefault(said, case) if said.count("\n") > 1 else case
        return said if known == case else f" (as in {known!r})"

    @property
    def text(self) -> str:
        """All cases, in their order."""
        return "\n".join(f"## {name}\n\n{text}\n" for name, text in self.texts.items())


def golden_cases(test: Callable[[Cases], None]) -> Callable[[Compare], None]:
    """Return the test that compares what is said of the cases with the golden file."""
    rule, part = (name.removeprefix("test_") for name in (test.__module__.rpartition(".")[2], test.__name__))
    file = f"{rule}.txt" if part == "verdicts" else f"{rule}.{part}.txt"
    FILES.add(file)

    def test_golden(golden: Compare) -> None:
        cases = Cases()
        known = vars(sys.modules[test.__module__]) if part == "verdicts" else {}
        for example in filter(None, map(known.get, ("sick", "healthy"))):
            cases[str(inspect.getdoc(example)).partition("\n")[0]] = example
        test(cases)
        golden(file, cases.text)

    return test_golden


def answer(function: Callable[[], object]) -> object:
    """Return what a function returns, or what is unavailable to it."""
    try:
        return function()
    except Unavailable as missing:
        return missing


def distinct(entries: Iterator[Entry]) -> dict[str, str]:
    """Return entries by what they are, with a number where that is not the first."""
    found: dict[str, str] = {}
    for key, said in entries:
        again = sum(one == key or one.startswith(f"{key.rstrip(': ')} #") for one in found)
        found[f"{key.rstrip(': ')} #{again + 1}: " if again else key] = said
    return found


def said_of(verdict: Finding | Healthy) -> Iterator[Entry]:
    """Yield all that a verdict says besides its summary."""
    if verdict.concern is not Concern.TYPICAL_STEP:
        yield "concern: ", verdict.concern
    if isinstance(verdict, Finding):
        yield from marks(verdict)
    for one in verdict.evidence:
        yield evidence(one)
    for time in verdict.names if isinstance(verdict, Finding) else verdict.necessary:
        yield part(time)
    if isinstance(verdict, Finding):
        for number, remedy in enumerate(verdict.remedies, 1):
            yield from remedies(f"remedy {number}" if number > 1 else "remedy", remedy)
        yield from map(effect, verdict.effects)
        yield from map(run_effect, verdict.run_effects)


def marks(finding: Finding) -> Iterator[Entry]:
    if finding.severity is not None:
        yield "severity: ", finding.severity.word
    if finding.failure is not RunFailure.NONE:
        yield "failure: ", finding.failure.name.lower()
    if finding.takes is not None:
        yield "takes: ", shown(finding.takes)
    if finding.about is not None:
        yield "about: ", finding.about
    if finding.alike:
        yield "alike: ", shown(finding.alike)


def evidence(of: Measure | Table) -> Entry:
    if isinstance(of, Measure):
        return f"{of.label}: ", shown(of.value) + (f" (limit {shown(of.limit)})" if of.limit else "")
    rows = ("\n    " + " | ".join(map(shown, row)) for row in of.rows)
    return " | ".join(of.columns), "".join(rows)


def part(time: PartTime) -> Entry:
    return f"part {time.part}: ", shown(time.of) + (f": {time.why}" if time.why else "")


def remedies(name: str, remedy: Remedy) -> Iterator[Entry]:
    notes = [f"edit {remedy.edit_id}"] if remedy.edit_id else []
    notes += [f"width {shown(remedy.width)}"] if remedy.width else []
    notes += [f"changes: {remedy.changes}"] if remedy.changes else []
    place = f"{shown(remedy.at)}: " if remedy.at else ""
    yield f"{name}: ", place + remedy.action + "".join(f" [{note}]" for note in notes)
    if remedy.code:
        yield f"{name}, code", "".join(f"\n    {line}".rstrip() for line in remedy.code.splitlines())


def effect(of: Effect) -> Entry:
    flags = [name for name in ("overlaps", "spreads", "narrows") if getattr(of, name)]
    flags += ["at most"] if of.bound is Bound.AT_MOST else []
    flags += [f"parts {', '.join(of.parts)}"] if of.parts else []
    flags += [f"why: {of.why}"] if of.why else []
    time = shown(of.of) if of.of else "all"
    subject = f", {of.subject}" if of.subject else ""
    return f"effect on {of.stage}{subject}: ", ", ".join((f"{time} x {shown(of.scales)}", *flags))


def run_effect(of: RunEffect) -> Entry:
    flags = ["at most"] if of.bound is Bound.AT_MOST else []
    subject = f" of {of.subject}" if of.subject else ""
    told = (f"{shown(of.of)} x {shown(of.scales)}", f"{of.recurs}, {of.times} times", *flags)
    return f"effect on the run's {of.phase}{subject}: ", ", ".join(told)


def shown(value: Any) -> str:
    """Return a value by what a reader needs: numbers with five digits, records by the fields that say something."""
    match value:
        case bool() | str() | None:
            text = str(value)
        case int() | float():
            near = float(f"{value:.12g}")  # versions of Python differ in the last digits of a sum
            text = f"{near:,.0f}" if near.is_integer() and abs(near) < 1e10 else f"{near:.5g}"
        case Quantity(unit=unit, value=number):
            text = shown(number) + ("" if unit in {Unit.RATIO, Unit.COUNT} else f" {unit}")
        case Location():
            text = f"{value.path}:{value.line}"
        case Mapping():
            text = ", ".join(f"{shown(key)} {shown(one)}" for key, one in value.items())
        case tuple() | list():
            text = f"({', '.join(map(shown, value))})"
        case frozenset() | set():
            text = shown(sorted(value))
        case Record():
            given = ((name, getattr(value, name)) for name in value.__struct_fields__)
            text = ", ".join(f"{name} {shown(one)}" for name, one in given if one not in (None, False, "", (), {}))
        case _:
            text = value.__name__ if isinstance(value, type) else str(value)
    return text
