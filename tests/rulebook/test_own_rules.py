"""Rules of the user's own: the example of the guide, as a user runs it, and what is refused."""

from tests.cli.test_cli import SAMPLES, run
from tests.command import tfdoctor
from tests.kit import *
from tfdoctor.api.run import Results
from tfdoctor.recording import Recording
from tfdoctor.rulebook.book import rulebook
from tfdoctor.rulebook.config import Config
from tfdoctor.rulebook.own_rules import load
from tfdoctor.terms.pages import SECTIONS
from tfdoctor.terms.verdict import Finding, Healthy

GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "write-a-rule.md"
RULE, TEST = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
(TOML,) = re.findall(r"```toml\n(.*?)```", GUIDE.read_text(), re.DOTALL)
SAMPLE = str(SAMPLES / "cpu-input-bound")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's repository, with the rule of the guide in it."""
    (tmp_path / "doctor").mkdir()
    (tmp_path / "doctor" / "slow_callbacks.py").write_text(RULE)
    (tmp_path / "doctor" / "test_slow_callbacks.py").write_text(TEST)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_rule_of_the_guide_is_one(project: Path) -> None:
    (rule,) = load([project / "doctor"], taken=())
    assert (rule.name, rule.own, rule.needs) == ("slow-callbacks", True, ("Breakdown",))
    assert [type(example()) for example in (rule.sick, rule.healthy) if example] == [Finding, Healthy]


def test_it_may_speak_of_what_no_other_rule_explains(project: Path) -> None:
    path = project / "doctor" / "slow_callbacks.py"
    general = RULE.replace("breakdown: Breakdown", "breakdown: Breakdown, left: Unexplained", 1)
    imported = "from tfdoctor.facts.savings.given import Unexplained\n"
    assert general != RULE
    path.write_text(general.replace("from tfdoctor", f"{imported}from tfdoctor", 1))
    (rule,) = load([project / "doctor"], taken=())
    assert rule.needs == ("Breakdown", "Unexplained")


def test_it_may_use_the_edits_of_the_built_in_rules(project: Path) -> None:
    book = rulebook(Config(rules=(project / "doctor",)))
    (rule,) = (rule for rule in book.rules if rule.own)
    assert {"mixed-precision", "vectorized-map"} <= set(rule.edits())


def test_the_test_of_the_guide_passes(project: Path) -> None:
    done = ran_command("-m", "pytest", "-q", "-p", "no:cacheprovider", "doctor", cwd=project)
    assert (done.returncode, "1 passed" in done.stdout) == (0, True), done.stdout


def test_it_is_in_the_report_marked_as_the_users_own(project: Path) -> None:
    code, said = run("report", SAMPLE, "--out", ".", "--format", "json,html,md", "--rules", "doctor")
    assert code == 0
    assert "Your own rules: slow-callbacks." in said
    report = json.loads((project / "report.json").read_text())
    assert report["settings"]["own"] == ["slow-callbacks"]
    assert "slow-callbacks" in {each["rule"] for each in report["results"]}
    assert "docs/rules/slow-callbacks.md" not in (project / "report.html").read_text()


def test_the_settings_of_the_guide_hold_without_options(project: Path) -> None:
    (project / "pyproject.toml").write_text(TOML)
    (project / "inner").mkdir()
    code, said = run("explain", "slow-callbacks")
    assert (code, "| `share` | 0.05 | 0.1 |" in said, "your own rule" in said) == (0, True, True)
    assert "slow-callbacks [your own]" in run("rules")[1]


# What is no rule


def write(folder: Path, text: str, name: str = "slow_callbacks.py") -> str:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    with pytest.raises(ConfigError, match=r"^.*\Z") as refused:
        load([folder], taken={"input-bound"})
    return str(refused.value).replace(str(folder), "doctor")


@each("TOPIC", "check", "sick", "healthy")
def test_a_missing_part_is_named(part: str, tmp_path: Path) -> None:
    renamed = re.sub(rf"^(def )?{part}\b", rf"\1other_{part}", RULE, flags=re.MULTILINE)
    assert f"doctor/slow_callbacks.py defines no {part}: a rule defines" in write(tmp_path / "d", renamed)


@each(*SECTIONS)
def test_a_missing_section_is_named(section: str, tmp_path: Path) -> None:
    said = write(tmp_path / "d", RULE.replace(f"## {section}\n", ""))
    assert said.startswith("doctor/slow_callbacks.py: the docstring is not a rule page: ")
    assert section in said


@cases(
    ("def check(", "def check((", " cannot be loaded: SyntaxError: "),
    ("TOPIC = ", "raise SystemExit(3)\nTOPIC = ", ":32 cannot be loaded: SystemExit: 3."),
    ("import Breakdown", "import Brakdown", "cannot be loaded: ImportError: "),
    ("import Breakdown", "import Brakdown", "There is no such fact: the page of the manual on facts lists them."),
    ("Topic.EXECUTION", '"execution"', "TOPIC must be one of Topic.INPUT, "),
    (", limits: Limits = Limits()", "", "has Limits, but check has no parameter"),
    ("class Limits:", "class Others:", "cannot be loaded: NameError: "),
    ("limit(0.05, ", "max(0.05, 0.04) if True else (", "define Limits.share with limit("),
    ("@dataclass(frozen=True, slots=True)\n", "", "Limits must be a frozen dataclass."),
    ("breakdown: Breakdown", "breakdown", "the parameters of check must be annotated with facts"),
    ("breakdown: Breakdown", "breakdown: 'Nothing'", "the parameters of check must be annotated with facts"),
)  # fmt: skip
def test_what_is_wrong_is_one_sentence(old: str, new: str, said: str, tmp_path: Path) -> None:
    assert said in write(tmp_path / "d", RULE.replace(old, new, 1))


@cases(
    ("input_bound.py", "input-bound is the name of a built-in rule: rename the file."),
    ("input.py", "input is the name of a topic: rename the file."),
    ("SlowThing.py", "name the file in lowercase with underscores"),
)
def test_a_name_that_cannot_be_is_refused(name: str, said: str, tmp_path: Path) -> None:
    assert said in write(tmp_path / "d", RULE, name)


def test_two_rules_of_one_name_are_refused(tmp_path: Path) -> None:
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        (folder / "slow_callbacks.py").write_text(RULE)
    with pytest.raises(ConfigError, match="another rule is named slow-callbacks"):
        load([tmp_path / "a", tmp_path / "b"], taken=())


@cases(("none", "is not a folder"), ("empty", "contains no rule"))
def test_a_folder_without_rules_is_refused(name: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match=said):
        load([tmp_path / name], taken=())


# Choosing on the command line


def test_an_ignored_rule_is_told_and_not_called_healthy(tmp_path: Path) -> None:
    code, said = run("report", SAMPLE, "--out", str(tmp_path), "--format", "json", "--ignore", "input")
    assert code == 0
    assert "ignored by --ignore: " in said
    report = json.loads((tmp_path / "report.json").read_text())
    off = {each["rule"] for each in report["settings"]["off"]}
    assert "input-bound" in off
    assert not off & {each["rule"] for each in report["results"]}


def test_a_named_file_decides_when_to_fail_and_the_option_wins(tmp_path: Path) -> None:
    config = tmp_path / "ci.toml"
    config.write_text('fail-on = "critical"')
    common = ("report", SAMPLE, "--out", str(tmp_path), "--format", "json", "--config", str(config))
    assert (run(*common)[0], run(*common, "--fail-on", "never")[0], run(*common, "--ignore", "ALL")[0]) == (3, 0, 0)


@each(("report", SAMPLE), ("profile", "train.py"), ("rules",))
def test_an_unknown_name_is_refused_before_anything_is_done(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = tfdoctor(command[0], "--select", "inptu", *command[1:])
    assert done.returncode == 2
    assert done.stderr == "tfdoctor: --select: unknown rule or topic 'inptu': did you mean 'input'?\n"
    assert list(tmp_path.iterdir()) == []


def test_the_list_of_rules_is_also_data() -> None:
    code, said = run("rules", "--format", "json", "--ignore", "input-bound")
    assert code == 0
    rules = {each["name"]: each for each in json.loads(said)["rules"]}
    assert rules["input-bound"]["off"] == "ignored by --ignore"
    assert rules["input-bound"]["limits"]["share"] == {"value": 0.05, "default": 0.05}
    assert rules["sequential-map"]["needs"]


@cases(
    ("input-bond", "unknown rule 'input-bond': did you mean 'input-bound'?"),
    ("INPUT-BOUND", "unknown rule 'INPUT-BOUND': did you mean 'input-bound'?"),
    ("python-in-loop", "unknown rule 'python-in-loop': 'between-steps' reports it now."),
    ("zzz", "unknown rule 'zzz': `tfdoctor rules` lists all rules."),
    ("ALL", "ALL stands for several rules: `tfdoctor rules` lists them."),
    ("input", "input stands for several rules: `tfdoctor rules` lists them."),
)
def test_the_nearest_rule_is_named(name: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = tfdoctor("explain", name)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"tfdoctor: {said}\n")


class Over(Results):
    """A recording from Python that is over."""

    recording = Recording.open(Path(SAMPLE))


def test_the_settings_hold_for_recordings_from_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tfdoctor.toml").write_text('ignore = ["input"]')
    monkeypatch.chdir(tmp_path)
    found = Over().diagnosis
    assert "input-bound" in {each.rule for each in found.settings.off}
    assert "input-bound" not in {each.rule.name for each in found.results}
    (tmp_path / "tfdoctor.toml").write_text("ignroe = []")
    with pytest.raises(ConfigError, match="did you mean 'ignore'"):
        Over().report()
