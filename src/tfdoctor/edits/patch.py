"""From the remedies of findings to edits of files: in one patch that holds all of them, or as files for a trial."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from io import StringIO
from pathlib import Path

from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.rule import Rule
from tfdoctor.diagnosis.savings import Order as Ordering
from tfdoctor.diagnosis.savings import Relationship
from tfdoctor.edits.by_id import CHECKS, KINDS
from tfdoctor.edits.source import SourceFile, Sources
from tfdoctor.recording import Recording
from tfdoctor.source_code.splice import Declined, Lines, Splice, before_and_after, known, spliced
from tfdoctor.source_code.tree import SyntaxTree, unheard
from tfdoctor.terms.record import Record
from tfdoctor.terms.verdict import Edit, Finding, Location, Remedy, Replacement


class FileChange(Record):
    """A file as it is and as it will be; ``path`` is relative, with slashes."""

    path: str
    before: bytes
    after: bytes


def unified(changes: Iterable[FileChange], within: str = "") -> bytes:
    """Return a diff that ``git apply`` accepts in the folder that the paths are relative to.

    ``within`` is the path of that folder in its repository: "jobs/train/", or "" at the top or without one.
    Where a path begins with it, git would read the path from the top and change another file. Such a diff
    names all files from the top, in the header that git reads.
    """
    ordered = sorted(changes, key=lambda change: change.path)
    ends = [f"{side}{change.path}" for change in ordered for side in ("", "a/", "b/")]
    if not within or not any(end.startswith(within) for end in ends):
        return b"".join(map(_diff, ordered))
    changed = [change for change in ordered if change.before != change.after]
    from_top = [replace(change, path=f"{within}{change.path}") for change in changed]
    return b"".join(f"diff --git a/{change.path} b/{change.path}\n".encode() + _diff(change) for change in from_top)


def _diff(change: FileChange) -> bytes:
    # Latin-1 maps each byte to a character and back, whatever the file's encoding is.
    texts = (data.decode("latin-1") for data in (change.before, change.after))
    before, after = (list(StringIO(text)) for text in texts)  # lines end at line feeds only, as git's do
    # A tab ends a name with spaces.
    end = "\t" if " " in change.path else ""
    names = (f"a/{change.path}{end}", f"b/{change.path}{end}")
    lines = list(difflib.unified_diff(before, after, *names))
    head = "".join(lines[:2]).encode()
    ended = (line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines[2:])
    return head + "".join(ended).encode("latin-1")


class Draft:
    """What the findings change, file by file; the first edit of a place wins."""

    def __init__(self, recording: Recording) -> None:
        self.sources, self.rules = Sources(recording), list[str]()
        self.changed: dict[str, tuple[SourceFile, set[Splice]]] = {}  # by the name of the file in the patch
        self._module = cache(lambda source: SyntaxTree(source.text, self.sources.recorded(source.path)))

    def edit(self, remedy: Remedy, rule: Rule) -> tuple[Edit, SourceFile, list[Splice]]:
        """Return the edit of one remedy, alone.

        Raises:
            Declined: why there is none.
        """
        if not remedy.edit_id:
            raise Declined(rule.by_hand)
        at = known(remedy.at or self.sources.trains(), "the line to change is unknown")
        source = self.sources[at.path]
        kind = known({**KINDS, **rule.edits()}.get(remedy.edit_id), rule.by_hand)
        module = self._module(source)
        if remedy.edit_id in CHECKS:
            CHECKS[remedy.edit_id](self.sources.program, module, at.line, remedy.code)
        try:
            splices = kind(module, at.line, remedy.code)
        except RecursionError as error:  # a = f(b) and b = f(a), or a function that returns its own result
            raise Declined("names of the file stand for each other") from error
        _must_parse(source, splices)
        line, before, after = before_and_after(source.text, splices)
        replacements = replaced(source.text, splices)
        return Edit(Location(at.path, line), before, after, replacements=replacements), source, splices

    def add(self, source: SourceFile, splices: Iterable[Splice]) -> str:
        """Take an edit into the patch; return why not, or ""."""
        if not source.name:
            return f"{source.path} is outside the folder in which the run was started"
        if not source.name.isprintable() or '"' in source.name:
            return f"the name of {source.path} has characters that git escapes"
        together = {*splices, *self.changed.get(source.name, (source, set[Splice]()))[1]}
        try:
            _must_parse(source, together)
        except Declined as reason:
            return str(reason)
        self.changed[source.name] = source, together
        return ""

    def patch(self) -> bytes:
        """Return all edits as one unified diff, b"" when there are none."""
        changes = [
            FileChange(name, source.data, source.encoded(spliced(source.text, splices)))
            for name, (source, splices) in self.changed.items()
        ]
        return unified(changes, next((source.within for source, _ in self.changed.values()), ""))


def replaced(text: str, splices: Iterable[Splice]) -> tuple[Replacement, ...]:
    """Return the splices by lines and columns; those at one place are one."""
    lines = Lines.of(text)
    found: list[Replacement] = []
    for splice in sorted(set(splices)):
        start, end = lines.place(splice.start), lines.place(splice.end)
        if found and found[-1].end == start == found[-1].start:
            found[-1] = Replacement(start, end, found[-1].text + splice.new)
        else:
            found.append(Replacement(start, end, splice.new))
    return tuple(found)


def edited(
    recording: Recording, results: Iterable[Result], order: Ordering | None
) -> tuple[tuple[Result, ...], bytes]:
    """Return the results with the edits of their remedies, and the patch of those that go together.

    Findings earlier in the order have precedence. Left out of the patch are: a finding that excludes one in
    the patch, one that saves nothing more once those in the patch are fixed, and one that saves nothing
    before others that are not in the patch.
    """
    draft, results, order = Draft(recording), tuple(results), order or Ordering()
    unneeded = {relation.rule for relation in order.relations if relation.kind is Relationship.UNNEEDED}
    by_turn = sorted(results, key=lambda result: (bool(_after(result)), result.rule.name in unneeded))
    done = {id(result): _with_edits(result, draft, order) for result in by_turn}
    return tuple(done[id(result)] for result in results), draft.patch()


def _with_edits(result: Result, draft: Draft, order: Ordering) -> Result:
    if not isinstance(result.outcome, Finding):
        return result
    conflict = _conflict(result, draft.rules, order)
    edits, taken = [], ""
    for remedy in result.outcome.remedies:
        edit, taken = _edit(remedy, result.rule, draft, conflict, taken)
        edits.append(edit)
    if taken:
        draft.rules.append(result.rule.name)
    return replace(result, outcome=result.outcome.edited(edits))


def _edit(remedy: Remedy, rule: Rule, draft: Draft, conflict: str, taken: str) -> tuple[Edit, str]:
    """Return the edit of a remedy, and the edit id of its finding that is in the patch by now."""
    try:
        edit, source, splices = draft.edit(remedy, rule)
    except Declined as reason:
        return Edit(remedy.at, missing=str(reason)), taken
    except Exception as error:  # noqa: BLE001 - without this edit the report is as good as with it
        why = f"tfdoctor failed to make it ({error!r}): please report this defect"
        return Edit(remedy.at, missing=why), taken
    if remedy.changes:
        missing = f"{remedy.changes}; apply it yourself, or let `tfdoctor try --only {rule.name}` compare the two"
    elif conflict:
        missing = conflict
    elif taken not in ("", remedy.edit_id):
        missing = "the patch already has another fix for this finding"
    else:
        missing = draft.add(source, splices)
    return replace(edit, missing=missing), taken if missing else remedy.edit_id


def _after(result: Result) -> tuple[str, ...]:
    """Return the rules before which following this one saves nothing."""
    return result.saving.after if result.saving else ()


def _conflict(result: Result, patched: Sequence[str], order: Ordering) -> str:
    """Return why a finding's edits do not go with those of the rules in the patch, or ""."""
    name = result.rule.name
    absent = [rule for rule in _after(result) if rule not in patched]
    if absent:
        return f"it saves nothing before a fix for {' and '.join(absent)}, which the patch does not have"
    if rival := next((one for one in patched if frozenset((name, one)) in order.rivals), ""):
        return f"it cannot be combined with the fix for {rival}, which is in the patch"
    enough = [one.others for one in order.relations if one.kind is Relationship.UNNEEDED and one.rule == name]
    if enough and set(enough[-1]) <= set(patched):
        return f"it saves nothing more after the fix for {' and '.join(enough[-1])}"
    return ""


def _must_parse(source: SourceFile, splices: Iterable[Splice]) -> None:
    """Decline an edit after which Python could no longer read the file."""
    text = spliced(source.text, splices)
    try:
        with unheard():
            compile(source.encoded(text), source.path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise Declined("the edited file would not be valid Python") from error


def changed_files(
    recording: Recording, results: Sequence[Result], more: Iterable[tuple[str, Sequence[Splice]]] = ()
) -> Mapping[Path, bytes]:
    """Return the files that the first edits of these findings change, by absolute path with links resolved.

    Of each finding, the edits of one kind are taken: its other remedies are other ways to the same end.
    ``more`` are further replacements, each with the name of its file in reports.

    Raises:
        Declined: why a finding has no edit, or does not go with those before it.
    """
    draft = Draft(recording)
    for result in results:
        taken, why = "", ""
        for remedy in result.finding.remedies if result.finding else ():
            if taken in ("", remedy.edit_id):  # also where it changes what is trained
                edit, taken = _edit(replace(remedy, changes=""), result.rule, draft, "", taken)
                why = why or edit.missing
        if not taken:
            raise Declined(why or "it has no remedy")
    for path, splices in more:
        if why := draft.add(draft.sources[path], splices):
            raise Declined(why)
    return {
        Path(draft.sources.recorded(source.path)).resolve(): source.encoded(spliced(source.text, splices))
        for source, splices in draft.changed.values()
    }
