"""What a rule of the user's own returns or raises is a verdict, or one sentence that names its file."""

import importlib

from tests.cli.test_cli import SAMPLES, run
from tests.kit import *
from tests.rulebook.test_own_rules import RULE
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.rulebook.own_rules import fault, load
from tfdoctor.rules import all_rules

SAMPLE = str(SAMPLES / "cpu-input-bound")


def returning(folder: Path, value: str, part: str = "check") -> Path:
    """Write the guide's rule, with a function that does this whatever it sees."""
    begin = rf"(def {part}\(.*?\) -> Verdict:\n    \"\"\".*?\"\"\"\n)"
    text, times = re.subn(begin, rf"\1    {value}\n", RULE, flags=re.DOTALL)
    assert times == 1
    path = folder / "doctor" / "slow_callbacks.py"
    path.parent.mkdir()
    path.write_text(text)
    return path


def finding(**parts: str) -> str:
    given = {"summary": "'x'", "evidence": "()", "remedies": "()"} | parts
    return f"return Finding({', '.join(f'{name}={value}' for name, value in given.items())})"


WRONG = {
    "return None": "None, which is not a Finding, Healthy or NotApplicable.",
    "return {'a': 1}": "{'a': 1}, which is not a Finding, Healthy or NotApplicable.",
    "return Healthy": "the class Healthy, which is not a Finding, Healthy or NotApplicable.",
    "return Healthy(summary=3)": "Healthy.summary = 3, which is not a str.",
    "return Healthy(summary='x', evidence=Measure('seen', ms(1.0)))": "which is not a tuple: ",
    finding(remedies="Remedy('y')"): "Finding.remedies = a Remedy, which is not a tuple",
    finding(evidence="(1.0,)"): "Finding.evidence[0] = 1.0, which is not a Measure or Table.",
    finding(evidence="(Measure('seen', 1.0),)"): "evidence[0].value = 1.0, which is not a Quantity.",
    finding(severity="2"): "Finding.severity = 2, which is not a Severity or NoneType.",
    finding(effects="(Effect(Stage.HOST, -1.0),)"): "an Effect with scales=-1: it must be finite and at least 0",
    finding(effects="(Effect(Stage.HOST, float('nan')),)"): "an Effect with scales=nan: ",
    finding(effects="(Effect('host'),)"): "Finding.effects[0].stage = 'host', which is not a Stage.",
    finding(effects="(Effect(Stage.HOST, of=ratio(0.1)),)"): "an Effect whose `of` is not a time",
}


@each(*WRONG)
def test_what_is_no_verdict_is_named(value: str, tmp_path: Path) -> None:
    path = returning(tmp_path, value)
    (rule,) = load([path.parent], taken=())
    said = f"{re.escape(f'{path}: check returned ')}.*{re.escape(WRONG[value])}.*"
    with pytest.raises(ConfigError, match=rf"^{said}\Z"):
        rule.check(Breakdown.of(device=1.0))


@each(*(rule.name.replace("-", "_") for rule in all_rules()))
def test_the_verdicts_of_tfdoctors_rules_are_verdicts(name: str) -> None:
    case = importlib.import_module(f"tests.rules.test_{name}")
    assert (fault(case.sick()), fault(case.healthy())) == ("", "")


@cases(
    ("return None", ": check returned None, which is not a Finding"),
    ("raise KeyError('shape')", ":47: check failed: KeyError: 'shape'."),
    ("raise SystemExit(5)", ":47: check failed: SystemExit: 5."),
)
def test_a_report_tells_whose_fault(value: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = returning(tmp_path, value)
    said = said.replace("47", str(path.read_text().splitlines().index(f"    {value}") + 1))
    monkeypatch.chdir(tmp_path)
    code, shown = run("report", SAMPLE, "--out", ".", "--format", "json,html,md", "--rules", "doctor")
    assert code == 0
    sentence = f"doctor/slow_callbacks.py{said}"
    assert f"Your own rule slow-callbacks failed: {sentence}" in " ".join(shown.split())
    assert "a defect of tfdoctor" not in shown
    results = json.loads((tmp_path / "report.json").read_text())["results"]
    (mine,) = (each for each in results if each["rule"] == "slow-callbacks")
    assert (mine["outcome"], sentence in mine["reason"]) == ("errored", True)
    for name in ("report.html", "report.md"):
        failed = re.findall("Failed: (your own rules|defects of tfdoctor)", (tmp_path / name).read_text())
        assert set(failed) == {"your own rules"}


def test_an_example_that_fails_is_one_sentence(tmp_path: Path) -> None:
    returning(tmp_path, "raise ValueError('no example')", "sick")
    done = ran_command("-m", "tfdoctor", "explain", "slow-callbacks", "--rules", "doctor", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    said = r"tfdoctor: doctor/slow_callbacks\.py:\d+: sick failed: ValueError: no example\.\n"
    assert re.fullmatch(said, done.stderr)


def test_a_fact_that_is_missing_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = "from tfdoctor.facts.chart import Unavailable; raise Unavailable('no callback is known')"
    returning(tmp_path, line)
    monkeypatch.chdir(tmp_path)
    code, said = run("report", SAMPLE, "--out", ".", "--format", "json", "--rules", "doctor")
    assert code == 0
    assert "failed" not in said
    assert "no callback is known" in (tmp_path / "report.json").read_text()
