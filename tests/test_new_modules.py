"""What `make rule` and `make fact` write works before a word of it is changed."""

import importlib.util

from scripts import new_fact, new_module, new_rule
from tests.kit import *
from tfdoctor.diagnosis.rule import Rule, Topic
from tfdoctor.terms.pages import SECTIONS
from tfdoctor.terms.verdict import Finding, Healthy

TODO_CODES = {"FIX002", "TD002", "TD003"}
"""The rules of ruff that a TODO comment breaks."""

PAGE, MODULE, TEST = new_rule.files("late-shrink", Topic.INPUT).items()


def load(path: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    (tmp_path / PAGE[0].name).write_text(PAGE[1])
    return written(tmp_path, MODULE, "tfdoctor.rules.input.late_shrink", monkeypatch)


@pytest.fixture
def its_test(rule: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    test = written(tmp_path, TEST, "tests.rules.test_late_shrink", monkeypatch)
    assert test.check is rule.check
    return test


def written(folder: Path, file: tuple[Path, str], name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    path = folder / file[0].name
    path.write_text(file[1])
    module = load(path, name)
    monkeypatch.setitem(sys.modules, name, module)
    return module


def test_it_goes_where_rules_and_their_tests_are() -> None:
    assert MODULE[0].parts[-5:] == ("src", "tfdoctor", "rules", "input", "late_shrink.py")
    assert PAGE[0] == MODULE[0].with_suffix(".md")
    assert TEST[0].parts[-3:] == ("tests", "rules", "test_late_shrink.py")


def test_it_is_a_rule(rule: ModuleType, its_test: ModuleType) -> None:
    new = Rule.from_module(rule)
    assert (new.name, new.topic) == ("late-shrink", Topic.INPUT)
    assert tuple(new.doc.sections) == SECTIONS
    assert isinstance(its_test.sick(), Finding)
    assert isinstance(its_test.healthy(), Healthy)


def run_tests(module: ModuleType) -> None:
    for name in [name for name in vars(module) if name.startswith("test_")]:
        getattr(module, name)()


def test_its_tests_pass(its_test: ModuleType) -> None:
    run_tests(its_test)


def test_a_fact_goes_where_its_room_is_and_its_tests_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (module, text), (test, tests) = new_fact.files("queue-depth", "input").items()
    assert module.parts[-3:] == ("facts", "input", "queue_depth.py")
    assert test.parts[-4:] == ("tests", "facts", "input", "test_queue_depth.py")
    (tmp_path / module.name).write_text(text)
    (tmp_path / test.name).write_text(tests)
    name = "tfdoctor.facts.input.queue_depth"
    monkeypatch.setitem(sys.modules, name, load(tmp_path / module.name, name))
    run_tests(load(tmp_path / test.name, "test_queue_depth"))


def refusal(module: ModuleType, name: str, *words: str) -> str:
    """Return how a name is refused."""
    with mock.patch.object(sys, "argv", ["new.py", name, *words]), pytest.raises(SystemExit) as refused:
        module.main()
    return str(refused.value)


@each("Late-Shrink", "late_shrink", "../late", "input-bound")
def test_it_refuses_a_name_that_is_taken_or_no_name(name: str) -> None:
    assert re.search(f"{re.escape(name)}|exists", refusal(new_rule, name, "--topic", "input"))


@cases(
    ("class", "Python keyword"),
    ("import", "Python keyword"),
    ("breakdown", "the class Breakdown exists in src/tfdoctor/facts/step_time/breakdown.py"),
    ("q" * 31, "at most 30 characters"),
)
def test_a_fact_whose_name_cannot_be_used_is_refused(name: str, reason: str) -> None:
    assert reason in refusal(new_fact, name, "--room", "input")


@each("q", "late-shrink", "a" * new_module.LONGEST_NAME)
def test_what_is_written_is_formatted(name: str) -> None:
    written = new_rule.files(name, Topic.INPUT) | new_fact.files(name, "operations")
    for path, text in written.items():
        assert path.suffix == ".md" or ruff("format", path, text) == text


def test_a_todo_that_is_left_fails_the_check() -> None:
    new = new_rule.files("late-shrink", Topic.INPUT)
    for room in ("input", "step_time", "steps", "tpu"):
        new |= new_fact.files("queue-depth", room)
    for path, text in ((path, text) for path, text in new.items() if path.suffix == ".py"):
        codes = set(re.findall(r": ([A-Z]+[0-9]+) ", ruff("check", path, text)))
        assert codes <= TODO_CODES
        assert bool(codes) is ("# TODO" in text)


def ruff(action: str, path: Path, text: str) -> str:
    """Return what ruff prints for the text of a file at this path."""
    ours = 'lint.isort.known-first-party = ["tests", "tfdoctor"]'  # it looks for files, which are not there
    options = ("--output-format", "concise", "--config", ours) if action == "check" else ()
    return ran_command("-m", "ruff", action, *options, "--stdin-filename", path, "-", input=text).stdout
