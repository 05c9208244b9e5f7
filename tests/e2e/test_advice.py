"""What tfdoctor advises runs in a real TensorFlow and does what it says; all of it in one process.

That is the code of pages and remedies as it is written, and scripts that are recorded, edited and run again. Beside
them, the line that takes the time of input made in Python is named, whichever thread runs it.
"""

from tests.e2e.edited import CASES, patch
from tests.e2e.kit import *
from tests.edits.kit import git_apply
from tfdoctor.facts.input.training_inputs import PaddedInput, SequencePadding
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.rules.input import padding_waste
from tfdoctor.rules.input.padding_waste import LengthWork
from tfdoctor.rules.input.padding_waste.batch_source import BatchMaker, BatchSource
from tfdoctor.rules.operations import unfused_batch_norm

pytestmark = pytest.mark.tensorflow

# Pages of the manual, and a layer that a rule advises

PAGES = ROOT / "docs" / "how-to"

GIVEN = {
    "speed-up-an-input-pipeline": "",
    "choose-shapes": "",
    "mixed-precision": "import tensorflow as tf\nloss_function = keras.losses.SparseCategoricalCrossentropy()\n",
}
"""What the pages take as given, behind their first import."""

PARTS = {name: f"\n{text}" for name, text in text_parts(Path(__file__).with_name("advice.txt")).items()}
"""What the pages are asked behind their code, by their names; and what is around the advice against padding."""

NORM = f"""
import keras, tensorflow as tf
{unfused_batch_norm.CODE["drop-in"]}

keras.utils.set_random_seed(1)
layers = [keras.Input([16, 16, 3]), keras.layers.Conv2D(16, 3), keras.layers.BatchNormalization()]
model = keras.Sequential([*layers, keras.layers.GlobalAveragePooling2D(), keras.layers.Dense(2)])
{unfused_batch_norm.CODE["clone"]}
x, y = tf.random.stateless_normal([32, 16, 16, 3], [1, 2]), tf.random.stateless_normal([32, 2], [3, 4])
losses = []
for one in (model, clone):
    one.compile("adam", "mse")
    losses.append(one.fit(x, y, epochs=5, batch_size=32, verbose=0).history["loss"])
assert type(clone.layers[1]).__name__ == "FusedBatchNormalization"
for a, b in zip(*losses):
    assert abs(a - b) < 1e-3 * a, losses
tf.debugging.assert_near(model.layers[1].moving_mean, clone.layers[1].moving_mean, 1e-3, 1e-3)
"""
"""The batch normalization that a rule advises trains like the usual one."""


def code_of(page: str) -> str:
    """Return a page's blocks of code as one program, with what they take as given and what they do."""
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    found = re.findall(r"^( *)```python\n(.*?)^\1```", text, re.MULTILINE | re.DOTALL)
    first, *more = [re.sub(rf"^{indent}", "", code, flags=re.MULTILINE) for indent, code in found]
    imports, *rest = re.split(r"(?<=\n)\n", first, maxsplit=1)
    return "\n".join([imports, GIVEN[page], *rest, *more, PARTS[page]])


# Shorter padding, for whatever makes the batches

AFTER = {
    BatchMaker.DATASET: PARTS["a dataset"],
    BatchMaker.ARRAYS: PARTS["a dataset"],
    BatchMaker.GIVEN: PARTS["batches that are given"],
    BatchMaker.LOOP: PARTS["a loop"],
}


def advised(maker: BatchMaker) -> tuple[str, str]:
    """Return the code for sequences of 5 to 59 positions that are padded to 120."""
    padding = SequencePadding((PaddedInput(120, (tuple(range(5, 60)),), batches=True),))
    found = padding_waste.check(padding, BatchSource(maker), LengthWork(()), Breakdown.of(device=30.0), None, None)
    assert isinstance(found, Finding)
    own, by_length = found.remedies
    return own.code, by_length.code


def program(maker: BatchMaker, *, by_length: bool) -> str:
    """Return a program that trains by the advice, and notes in `seen` how long its batches are."""
    begin = "dataset = dataset_of_examples()\n" if maker is BatchMaker.DATASET else ""
    parts = PARTS["before"], f"by_length = {by_length}", begin + advised(maker)[by_length], AFTER[maker]
    return "\n".join(parts)


PROGRAMS = {f"{maker}{' by length' * by}": (maker, by) for maker in BatchMaker for by in (False, True)}

RUN = """
import json, traceback
outcomes = {}
for name, text in json.load(open("programs.json")).items():
    names, error = {"__name__": name}, ""
    try:
        exec(compile(text, name, "exec"), names)
    except Exception:
        error = traceback.format_exc()
    outcomes[name] = error, names.get("seen")
json.dump(outcomes, open("outcomes.json", "w"))
"""

INPUT = "python_input.py"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """Run all in one process; what sets the type of all layers comes last.

    Scripts are edited as the golden patch says, with which a test compares that of their recordings.
    """
    folder = tmp_path_factory.mktemp("advice")
    shutil.copy(SCRIPTS / INPUT, folder)
    programs = {name: program(maker, by_length=by) for name, (maker, by) in PROGRAMS.items()}
    programs |= {"equivalents": (SCRIPTS / "equivalents.py").read_text("utf-8"), "unfused-batch-norm": NORM}
    (folder / "programs.json").write_text(json.dumps(programs | {page: code_of(page) for page in GIVEN}))
    (folder / "advice.py").write_text(RUN)
    (folder / "edited").mkdir()
    for name, (text, _) in CASES.items():
        for path in (folder / f"{name}.py", folder / "edited" / f"{name}.py"):
            path.write_text(text, "utf-8")
    git_apply(Path(__file__).with_name("golden").joinpath("patched.txt").read_bytes(), folder / "edited")
    short, sampled = {"steps": 4, "warmup": 2}, {"steps": 8, "warmup": 4, "sample_every_ms": 200}
    asked: dict[str, tuple[list[str], Any]] = {name: ([f"{name}.py"], short) for name in CASES}
    asked |= {kind: ([INPUT, kind], sampled) for kind in ("workers", "generator")}
    asked["advice"] = ["advice.py"], None
    return together(folder, asked | {f"edited {name}": ([f"edited/{name}.py"], None) for name in CASES})


@pytest.fixture(scope="module")
def outcomes(runs: dict[str, Run]) -> dict[str, tuple[str, Any]]:
    """Return the error of each program of advice, and what it has seen: the lengths of its batches."""
    found: dict[str, tuple[str, Any]] = json.loads(runs["advice"].out.with_name("outcomes.json").read_text())
    return found


@each("unfused-batch-norm", *GIVEN)
def test_the_code_of_each_page_and_the_advised_layer_do_what_they_say(name: str, outcomes: dict[str, Any]) -> None:
    assert outcomes[name][0] == ""


@each(*PROGRAMS)
def test_the_advice_against_padding_runs(name: str, outcomes: dict[str, tuple[str, Any]]) -> None:
    (maker, by_length), (error, shapes) = PROGRAMS[name], outcomes[name]
    assert error == ""
    mean = sum(shapes) / len(shapes)
    assert max(shapes) <= 64 + 8
    assert mean < 45 if by_length else mean > 50
    if maker in {BatchMaker.GIVEN, BatchMaker.LOOP}:
        assert len(set(shapes)) <= 4 + (not by_length)  # few shapes are traced


def test_python_in_the_input_is_replaced_by_equal_operations(outcomes: dict[str, tuple[str, Any]]) -> None:
    error, compared = outcomes["equivalents"]
    assert error == ""
    assert "numpy.convolve" in compared


def test_all_edits_of_a_script_go_together_and_it_trains(
    runs: dict[str, Run], golden: Callable[[str, str], None]
) -> None:
    """Of a fit; of a loop of one's own, beside a model that was debugged; and of a step of two models."""
    golden("patched.txt", "".join(patch(runs[name].out.parent, name) for name in CASES))
    said = re.sub(r"(?m)^traced [12]$", "traced", "".join(runs[f"edited {name}"].stdout for name in CASES))
    assert said.splitlines()[-4:] == [
        "traced",
        "eager False",
        "trained 24 True",
        "steps 16 jit True types ['bfloat16', 'float32']",
    ]


# The line of the input

TEXT = (SCRIPTS / INPUT).read_text(encoding="utf-8").splitlines()
MAKES = Location(INPUT, next(n for n, line in enumerate(TEXT, 1) if "def __getitem__" in line))
SLOW = Location(INPUT, TEXT.index("        zlib.decompress(PACKED)  # takes the time") + 1)


@cases(("workers", MAKES), ("generator", None))
def test_the_line_in_the_input_is_named(kind: str, at: Location | None, runs: dict[str, Run]) -> None:
    """Beside it that of a Keras dataset's own method, which is all that is known of worker processes."""
    run = runs[kind]
    assert run.manifest.agent_errors == ()
    verdict = judged(run, "python-input")
    assert isinstance(verdict, Finding)
    first, line, *_ = verdict.remedies
    assert f"{SLOW.path}:{SLOW.line}" in first.action or f"line {SLOW.line}" in first.action
    assert line.at == SLOW
    assert first.at == (at or first.at)
