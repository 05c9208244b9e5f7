"""From the remedies of findings to edits of files, and to the one patch that holds all of them."""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from tfdoctor.diagnosis import Edit, Relationship, Result
from tfdoctor.diagnosis import Order as Ordering
from tfdoctor.edits.diff import FileChange, unified
from tfdoctor.edits.kinds import BY_HAND, CHECKS, KINDS
from tfdoctor.edits.module import SyntaxTree
from tfdoctor.edits.source import SourceFile, Sources
from tfdoctor.edits.splice import Declined, Splice, before_and_after, overlapping, spliced
from tfdoctor.recording import Recording
from tfdoctor.verdict import Finding, Location, Remedy


@dataclass(slots=True)
class Draft:
    """What the findings change, file by file; the first to ask for a place gets it."""

    sources: Sources
    modules: dict[str, SyntaxTree] = field(default_factory=dict)
    named: dict[str, SourceFile] = field(default_factory=dict)
    splices: dict[str, set[Splice]] = field(default_factory=dict)
    rules: list[str] = field(default_factory=list)

    def edit(self, remedy: Remedy) -> tuple[Edit, SourceFile, list[Splice]]:
        """Return the edit of one remedy, alone.

        Raises:
            Declined: why there is none.
        """
        if remedy.edit_id not in KINDS:
            raise Declined(BY_HAND.get(remedy.edit_id, "it is a change to make by hand"))
        if remedy.edit_id in CHECKS:
            CHECKS[remedy.edit_id](self.sources.program, remedy.code)
        at = remedy.at or self.sources.trains()
        if at is None:
            raise Declined("the line that it belongs to is not known")
        source = self.sources[at.path]
        if at.path not in self.modules:
            self.modules[at.path] = SyntaxTree(source.text)
        module = self.modules[at.path]
        splices = KINDS[remedy.edit_id](module, at.line, remedy.code)
        _must_parse(source, splices)
        line, before, after = before_and_after(source.text, splices)
        return Edit(Location(at.path, line), before, after), source, splices

    def add(self, source: SourceFile, splices: list[Splice]) -> str:
        """Take an edit into the patch; return why not, or ""."""
        if not source.name:
            return f"{source.path} is not below the folder in which the run was started"
        if not source.name.isprintable() or '"' in source.name:
            return f"{source.path} has a name that git writes in another way"
        self.named[source.name] = source
        together = self.splices.get(source.name, set()) | set(splices)
        if overlapping(together):
            return "another change is in the same place"
        try:
            _must_parse(source, together)
        except Declined as why:
            return str(why)
        self.splices[source.name] = together
        return ""

    def patch(self) -> bytes:
        """Return all edits as one unified diff, b"" when there are none."""
        changed = {name: self.named[name] for name in self.splices}
        changes = [
            FileChange(name, source.data, source.encoded(spliced(source.text, self.splices[name])))
            for name, source in changed.items()
        ]
        return unified(changes, next((each.within for each in changed.values()), ""))


def edited(
    recording: Recording, results: Iterable[Result], order: Ordering | None
) -> tuple[tuple[Result, ...], bytes]:
    """Return the results with the edits of their remedies, and the patch of those that go together.

    Findings earlier in the order have precedence; one that excludes another is left out of the patch, and so
    is one that saves nothing more once those in it are followed, or nothing before others that are not in it.
    """
    draft, results = Draft(Sources(recording)), tuple(results)
    unneeded = _others(Relationship.UNNEEDED, order)
    by_turn = sorted(results, key=lambda one: (bool(_after(one)), one.rule.name in unneeded))
    done = {id(result): _with_edits(result, draft, order) for result in by_turn}
    return tuple(done[id(result)] for result in results), draft.patch()


def _others(kind: Relationship, order: Ordering | None) -> dict[str, tuple[str, ...]]:
    """Return the rules that stand in a relation to each rule that has one of this kind."""
    relations = order.relations if order else ()
    return {each.rule: each.others for each in relations if each.kind is kind}


def _with_edits(result: Result, draft: Draft, order: Ordering | None) -> Result:
    if not isinstance(result.outcome, Finding):
        return result
    against = _against(result, draft.rules, order)
    edits, taken = [], ""
    for remedy in result.outcome.remedies:
        edit, taken = _edit(remedy, draft, against, taken)
        edits.append(edit)
    if taken:
        draft.rules.append(result.rule.name)
    return replace(result, edits=tuple(edits))


def _edit(remedy: Remedy, draft: Draft, against: str, taken: str) -> tuple[Edit, str]:
    """Return the edit of a remedy, and which trial of its finding is in the patch by now."""
    try:
        edit, source, splices = draft.edit(remedy)
    except Declined as why:
        return Edit(remedy.at, missing=str(why)), taken
    if against:
        missing = against
    elif taken not in ("", remedy.edit_id):
        missing = "another change for the same fault is in the patch"
    else:
        missing = draft.add(source, splices)
    return replace(edit, missing=missing), taken if missing else remedy.edit_id


def _after(result: Result) -> tuple[str, ...]:
    """Return the rules before which following this one saves nothing."""
    return result.saving.after if result.saving else ()


def _against(result: Result, rules: Sequence[str], order: Ordering | None) -> str:
    """Return what speaks against a rule's edits beside those of the rules in the patch, or ""."""
    name = result.rule.name
    first = [one for one in _after(result) if one not in rules]
    if first:
        one = "which is" if len(first) == 1 else "which are"
        return f"it saves nothing before {' and '.join(first)}, {one} not in the patch"
    excluded = _others(Relationship.INSTEAD, order)
    rival = next(
        (one for one in rules if one in excluded.get(name, ()) or name in excluded.get(one, ())), ""
    )
    if rival:
        return f"it excludes that of {rival}, which is in the patch"
    enough = _others(Relationship.UNNEEDED, order).get(name, ())
    if enough and set(enough) <= set(rules):
        return f"it saves nothing more beside {' and '.join(enough)}"
    return ""


def _must_parse(source: SourceFile, splices: Iterable[Splice]) -> None:
    """Decline an edit after which the file could not be read by Python any more."""
    try:
        with warnings.catch_warnings(action="ignore"):  # of the user's code: not ours to show
            compile(
                source.encoded(spliced(source.text, splices)),
                source.path,
                "exec",
                dont_inherit=True,
            )
    except (SyntaxError, ValueError) as error:
        raise Declined("the line is written in a way that the edit does not fit") from error
