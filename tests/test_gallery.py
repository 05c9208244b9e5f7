"""The gallery: each patch that its driver tries applies to its script, and leaves a program."""

from benchmarks import alternating, gallery, trying
from tests.kit import *


def report_with(*rules: str) -> trying.Object:
    findings = [{"rule": rule, "outcome": "finding", "remedies": [{"edit": None}]} for rule in rules]
    return {"results": findings, "together": None}


@each(*gallery.ENTRIES, ids=lambda entry: entry.name)
def test_every_patch_applies_to_its_script(entry: gallery.Entry, tmp_path: Path) -> None:
    values = list(gallery.patches(entry, report_with(*entry.patched.values()), tmp_path))
    assert values
    for value in values:
        rule, equals, path = value.rpartition("=")
        assert bool(equals) == (Path(path).name != gallery.BOTH)
        assert entry.patched.get(Path(path).name, "") == rule
        (tmp_path / entry.script).write_bytes((gallery.SCRIPTS / entry.script).read_bytes())
        subprocess.run(["git", "apply", path], cwd=tmp_path, check=True)
        changed = (tmp_path / entry.script).read_text()
        assert changed != (gallery.SCRIPTS / entry.script).read_text()
        compile(changed, entry.script, "exec")


def test_a_change_that_tfdoctor_can_make_needs_no_patch(tmp_path: Path) -> None:
    (entry,) = (entry for entry in gallery.ENTRIES if entry.name == "Image folder")
    found = {"rule": gallery.PRECISION, "outcome": "finding", "remedies": [{"edit": {"after": "x"}}]}
    assert list(gallery.patches(entry, {"results": [found]}, tmp_path)) == []


def test_a_change_that_is_not_advised_says_so_and_both_needs_the_promise_of_both() -> None:
    entry = next(entry for entry in gallery.ENTRIES if gallery.NORM in entry.rules)
    patch = {"name": "mixed-bfloat16.diff", "promised": None}
    assert gallery.promise(patch, entry, report_with(gallery.NORM)) == "not advised"
    assert gallery.promise(patch, entry, report_with(gallery.PRECISION)) == "no figure"
    together = {"bound": "at-most", "share": 0.4, "rules": [gallery.NORM, gallery.PRECISION]}
    both = {"name": gallery.BOTH, "promised": None}
    assert gallery.promise(both, entry, {"results": [], "together": together}) == "at most 40 %"
    partly = together | {"rules": [gallery.NORM]}
    assert gallery.promise(both, entry, {"results": [], "together": partly}) == "no figure"


def test_no_published_code_begins_with_a_bare_backslash() -> None:
    pages = sorted(gallery.REPORTS.glob("*.md"))
    assert pages
    assert [page.name for page in pages if "```python\n\\\n" in page.read_text("utf-8")] == []


def test_the_page_explains_the_patches_that_have_a_row_and_no_others() -> None:
    page = (gallery.REPORTS / "index.md").read_text("utf-8")
    rows = set(re.findall(r"\| ([\w-]+\.diff) \|", page))
    assert rows
    assert set(re.findall(r"^- `([\w-]+\.diff)`", page, re.MULTILINE)) == rows


def test_steps_by_turns_show_a_saving_through_the_noise_of_the_host() -> None:
    """The host is up to twice as slow for 20 steps at a time."""
    draw = random.Random(1)
    host = [draw.uniform(1.0, 2.0) for _ in range(30) for _ in range(20)]
    as_is = [100.0 * slow * draw.uniform(0.98, 1.02) for slow in host]
    changed = [80.0 * slow * draw.uniform(0.98, 1.02) for slow in host]
    found = alternating.saved(as_is, changed[:-1])
    assert found["steps"] == 599 - alternating.WARM
    assert found["low"] < 0.2 < found["high"]
    assert found["high"] - found["low"] < 0.02
    assert alternating.saved(as_is, as_is)["share"] == 0.0


def test_a_share_by_turns_has_its_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = gallery.ENTRIES[0]
    stored = {entry.name: {"a": {"share": 0.107, "low": 0.097, "high": 0.118}}}
    monkeypatch.setattr(gallery, "by_turns", lambda: stored)
    assert gallery.alternated(entry, "a") == "11 % (9.7 to 12 %)"
    assert gallery.alternated(entry, "b") == ""


TINY = """
import keras
import numpy as np

model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(UNITS)])
model.compile("sgd", "mse")
model.fit(np.ones((64, 4)), np.ones((64, 1)), batch_size=8, epochs=1)
"""

TWICE = """
import keras, runpy, sys
fit, worker = keras.Model.fit, sys.argv[1]
for changed in sys.argv[2:]:
    keras.Model.fit, sys.argv = fit, [worker, "0.3", "a.py", changed]
    runpy.run_path(worker, run_name="__main__")
"""


@pytest.mark.tensorflow
def test_two_trainings_take_turns(tmp_path: Path) -> None:
    """Until one of them fails: then so does the worker."""
    for name, text in {"a": TINY.replace("UNITS", "1"), "b": TINY.replace("UNITS", "2"), "fails": "1 / 0"}.items():
        (tmp_path / f"{name}.py").write_text(text)
    worker = Path(alternating.__file__).with_name("alternating_worker.py")
    words = [sys.executable, "-c", TWICE, str(worker), "b.py", "fails.py"]
    ran = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    (line,) = (line for line in ran.stdout.splitlines() if line.startswith("[["))
    as_is, changed = json.loads(line)
    assert min(len(as_is), len(changed)) > 8  # past the one epoch that the script asks for
    assert abs(len(as_is) - len(changed)) <= 1
    assert ran.returncode == 1
    assert ran.stderr.rstrip().endswith("ZeroDivisionError: division by zero")
