"""What tests of edits are written with, ``from tests.edits.kit import *``: texts, and recordings of files."""

import hashlib
from difflib import unified_diff

from tests.facts.kit import Told
from tests.kit import *
from tests.report.diagnoses import rule
from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.rule import NO_EDIT
from tfdoctor.diagnosis.savings import Order
from tfdoctor.edits import by_id, patch
from tfdoctor.recording import Recording
from tfdoctor.recording.manifest import Manifest
from tfdoctor.recording.program import ProgramRecord
from tfdoctor.recording.typed import read
from tfdoctor.rules import all_rules
from tfdoctor.rules.operations.unfused_batch_norm import CODE
from tfdoctor.source_code.splice import Declined, Splice, spliced
from tfdoctor.source_code.tree import SyntaxTree
from tfdoctor.terms.verdict import Finding, Location, Remedy

MODULES = {edit_id: rule.edit_modules for rule in all_rules() for edit_id in rule.edits()}
"""The module of each edit that belongs to one rule."""

KINDS: dict[str, by_id.Kind] = {
    **by_id.KINDS,
    **{edit_id: edit for rule in all_rules() for edit_id, edit in rule.edits().items()},
}
"""All edits by their ids: those that rules share, and those of one rule."""

EXAMPLES = {
    "cache": "dataset = dataset.map(f, num_parallel_calls=tf.data.AUTOTUNE)\ndataset = dataset.cache()",
    "mixed-precision": 'keras.mixed_precision.set_global_policy("mixed_bfloat16")',
    "steps-per-execution": "model.compile(optimizer, loss, steps_per_execution=16)",
    "vectorized-map": "dataset = dataset.map(parse, num_parallel_calls=tf.data.AUTOTUNE)",
    "fused-batch-norm": CODE["drop-in"],
    "decode-ratio": "ratio=4",
    "precision-policy": 'keras.mixed_precision.set_global_policy("float32")',
    "earlier-shuffle": "dataset = dataset.shuffle(3200).batch(32)",
    "layer-width": "130  ->  128    # fewer tiles",
}
"""The examples of rules, where an edit takes its value from the example."""


def edited(edit_id: str, text: str, marked: str = "", example: str | None = None) -> str:
    """Return a text after one edit, of the first line that holds the mark; "" is an unknown line."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    number = 1 + next(at for at, line in enumerate(lines) if marked in line) if marked else 0
    given = EXAMPLES.get(edit_id, "") if example is None else example
    new = spliced(text, KINDS[edit_id](SyntaxTree(text), number, given))
    ast.parse(new)
    return new


def change(edit: Callable[[str], str], text: str) -> str:
    """Return the lines that an edit of a text takes out and puts in, as a diff has them, or why it is not made."""
    try:
        lines = unified_diff(text.split("\n"), edit(text).split("\n"), lineterm="", n=0)
    except Declined as why:
        return f"declined: {why}"
    return "\n".join([*lines][2:])


class Edits(Told):
    """Edits of texts: what each of them writes, or why it is not made, is in one golden text beside the test.

    Such a text belongs to few words, which are the name of its case.
    """

    def of(self, name: str, edit: Callable[[str], str], within: Callable[..., str], *texts: Any) -> None:
        for words in texts:
            given = words if isinstance(words, tuple) else (words,)
            case = f"{name}: {' | '.join(given)}".replace("\n", "\\n").strip()
            self.add(case, partial(change, edit, within(*given)))

    def make(
        self, edit_id: str, marked: str, within: Callable[..., str], *texts: Any, example: str | None = None
    ) -> None:
        """Make an edit by its id, of the first line that holds the mark."""
        self.of(edit_id, lambda text: edited(edit_id, text, marked, example), within, *texts)


def git_apply(patch: bytes, folder: Path) -> None:
    """Apply a patch below a folder by git itself, which checks every byte of it."""
    command = ["git", "-c", "core.autocrlf=false", "apply", "--whitespace=nowarn", "-"]
    subprocess.run(command, input=patch, cwd=folder, check=True, capture_output=True, timeout=60)


def recorded(
    folder: Path,
    files: Sequence[str] = ("train.py",),
    run: Mapping[str, object] | None = None,
    layers: Sequence[Mapping[str, str]] | None = (),
) -> Recording:
    """Return the recording of a run in a folder: the hashes of these files, its settings and layers."""
    hashes = {str(folder / name): hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in files}
    written = [{"name": f"layer{at}", **layer} for at, layer in enumerate(layers or ())]
    data = {"sources": hashes, "run": run, "layers": None if layers is None else written}
    return Recording(None, Manifest(cwd=str(folder)), (), read(ProgramRecord, data, []), (), ())


def finding(name: str, *remedies: Remedy, by_hand: str = NO_EDIT) -> Result:
    """Return a finding with these remedies, of a rule that says what is in the way of an edit.

    It has the edits of the rule that the first remedy with an edit of its own belongs to.
    """
    modules = [MODULES[remedy.edit_id] for remedy in remedies if remedy.edit_id in MODULES]
    own = replace(rule(name), by_hand=by_hand, edit_modules=modules[0] if modules else ())
    return Result(rule=own, outcome=Finding(summary="", evidence=(), remedies=remedies))


def remedy(edit_id: str, path: str = "train.py", line: int = 1, code: str = "") -> Remedy:
    """Return a remedy for a line."""
    return Remedy("Change it", code, Location(path, line) if line else None, edit_id)


def made(
    where: Path | Recording, *findings: Result, run: Mapping[str, object] | None = None, order: Order | None = None
) -> tuple[tuple[Result, ...], bytes]:
    """Return findings with their edits, and the patch, of a recording or of ``train.py`` in a folder."""
    recording = where if isinstance(where, Recording) else recorded(where, run=run)
    return patch.edited(recording, findings, order)


def said(where: Path | Recording, *findings: Result, **more: Any) -> str:
    """Return what the edits of findings write, or why they are not in the patch; then the patch."""
    results, patch = made(where, *findings, **more)
    edits = [(result.rule.name, edit) for result in results for edit in result.edits]
    told = [f"{rule}: {one.after.strip() or 'nothing'} ({one.missing or 'in the patch'})" for rule, one in edits]
    return "\n".join([*told, *patch.decode().splitlines()])


def missing(results: Iterable[Result]) -> list[str]:
    """Return why the edits of findings are not in the patch."""
    return [edit.missing for result in results for edit in result.edits]


def replacing(text: str) -> Callable[[str, str], str]:
    """Return what gives the text with other words in the place of some of it."""

    def replaced(old: str, new: str) -> str:
        assert old in text
        return text.replace(old, new)

    return replaced
