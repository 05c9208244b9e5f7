"""Findings become edits: which of them go into one patch, and the files as chosen ones change them for a trial."""

from tests.edits.kit import *
from tfdoctor.diagnosis.savings import Order, Relation, Relationship, Saving
from tfdoctor.edits.patch import changed_files
from tfdoctor.terms.verdict import Bound

TEXT = """\
import tensorflow as tf

d = tf.data.Dataset.range(8).map(f)
d = d.batch(2)
model.compile("adam", "mse")
model.fit(d)
"""

COMPILED, STEPPED = (
    remedy("jit-compile", line=5),
    remedy("steps-per-execution", line=5, code="steps_per_execution=8"),
)
PARALLEL, BATCH = (
    finding(name, remedy(name, line=at)) for at, name in ((3, "parallel-map"), (4, "parallel-batch"))
)
JIT, STEPS = finding("jit-compile", COMPILED), finding("steps-per-execution", STEPPED)
EPOCH = {"steps_per_epoch": 80}


def after(result: Result, *others: str) -> Result:
    """Return a finding whose fix saves nothing before other findings are fixed."""
    saving = Saving(ms_per_step=0.0, share=0.0, bound=Bound.EXPECTED, how="", after=others)
    return replace(result, saving=saving)


def related(kind: Relationship, rule: str, *others: str) -> Order:
    return Order(relations=(Relation(kind, rule, others),))


def changed(script: Path, *findings: Result) -> str:
    """Return the lines that change in the files for a trial."""

    def edit(_: str) -> str:
        ((path, text),) = changed_files(recorded(script.parent), findings).items()
        assert (path, script.read_text()) == (script.resolve(), TEXT)
        return text.decode()

    return change(edit, TEXT)


def test_edits_of_findings_are_one_patch(
    tmp_path: Path, golden: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "train.py"
    script.write_text(TEXT)
    by_hand, dependent = finding("parallel-map", remedy("", line=3)), after(JIT, "parallel-map")
    excluded = related(Relationship.INSTEAD, "jit-compile", "steps-per-execution")
    unneeded = related(Relationship.UNNEEDED, "parallel-map", "parallel-batch", "jit-compile")
    needless, cost = related(Relationship.UNNEEDED, "parallel-map", "cost"), finding("cost", remedy("", line=4))
    monkeypatch.syspath_prepend(str(tmp_path))  # an edit fails as one of a rule in the user's folder may
    (tmp_path / "edits_of_mine.py").write_text("EDITS = {'mine': lambda *_: [][1]}")
    broken = finding("mine", remedy("mine", line=3))
    broken = replace(broken, rule=replace(broken.rule, edit_modules=("edits_of_mine",)))
    library = finding("a", remedy("jit-compile", str(script), 5))
    (tmp_path / "run").mkdir()

    told, of = Told(), partial(said, recorded(tmp_path, run=EPOCH))
    rows: dict[str, tuple[Result, ...]] = {
        "several findings": (PARALLEL, BATCH, JIT),
        "one that saves nothing before another, which is made by hand": (dependent, by_hand),
        "one that saves nothing before another, which is an edit": (dependent, PARALLEL),
        "the same edit twice": (finding("a", COMPILED), finding("b", COMPILED)),
        "several fixes for one finding": (finding("a", COMPILED, STEPPED),),
        "a remedy without a line, made where the run trains": (finding("a", remedy("jit-compile", line=0)),),
        "a defect in one edit, which costs that edit alone": (broken, JIT),
    }
    told[of] = rows
    told[partial(of, order=excluded)] = {"two that exclude each other": (JIT, STEPS), "in turn": (STEPS, JIT)}
    told[partial(of, order=unneeded)] = {"one that saves nothing after the others": (PARALLEL, BATCH, JIT)}
    told[partial(of, order=needless)] = {"one that saves nothing after a fix by hand": (PARALLEL, cost)}
    for epoch in (80, 65, None):
        run = {"steps_per_epoch": epoch} if epoch else {}
        told.add(f"8 steps in each call and {epoch} in an epoch", partial(said, recorded(tmp_path, run=run), STEPS))
    outside = said(recorded(tmp_path / "run", [str(script)]), library).replace(str(tmp_path), "…")
    told.add("a file outside", lambda: outside)
    several = finding("a", remedy("", line=3), remedy("parallel-map", line=3), remedy("cache", line=3))
    trials = {
        "a trial of one": (PARALLEL,),
        "a trial of two": (PARALLEL, JIT),
        "a trial of none": by_hand,
        "a trial of several remedies": several,
    }
    told[partial(changed, script)] = trials
    lines = "\n".join(told.lines())
    script.write_text("model.compile(\n")
    golden("together.txt", f"{lines}\n## a file that is no Python\n{said(tmp_path, JIT)}\n")
