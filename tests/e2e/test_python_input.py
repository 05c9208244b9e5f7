"""The line that takes the time of input made in Python is named, whichever thread runs it."""

from tests.e2e.kit import *
from tfdoctor.diagnose.diagnose import diagnose
from tfdoctor.rules import all_rules

pytestmark = pytest.mark.tensorflow

SCRIPT = SCRIPTS / "python_input.py"
TEXT = SCRIPT.read_text(encoding="utf-8").splitlines()
MAKES = Location(SCRIPT.name, next(n for n, line in enumerate(TEXT, 1) if "def __getitem__" in line))
SLOW = Location(SCRIPT.name, TEXT.index("    zlib.decompress(PACKED)  # takes the time") + 1)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    folder = tmp_path_factory.mktemp("input")
    shutil.copy(SCRIPT, folder)
    plan = {"sample_every_ms": 200}
    return together(folder, {kind: ([SCRIPT.name, kind], plan) for kind in ("workers", "generator")})


@cases(("workers", MAKES), ("generator", None))
def test_the_line_in_the_input_is_named(kind: str, at: Location | None, runs: dict[str, Run]) -> None:
    """Beside it that of a Keras dataset's own method, which is all that is known of worker processes."""
    run = runs[kind]
    assert run.manifest.agent_errors == ()
    found = diagnose(run.recording, all_rules(), "input", ask_xprof=False)
    (verdict,) = (result.outcome for result in found.results if result.rule.name == "python-input")
    assert isinstance(verdict, Finding)
    first, line, *_ = verdict.remedies
    assert f"{SLOW.path}:{SLOW.line}" in first.action or f"line {SLOW.line}" in first.action
    assert line.at == SLOW
    assert first.at == (at or first.at)
