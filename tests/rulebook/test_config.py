"""`[tool.tfdoctor]`: what it takes, where it is found, and how it refuses."""

import math
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts import document
from tests.cases import cases
from tfdoctor.diagnosis.rule import Topic
from tfdoctor.rulebook.book import applied
from tfdoctor.rulebook.config import ALL, KEYS, Config, FailOn, RuleNames, find, load
from tfdoctor.rulebook.config.budget import BUDGET_KEYS
from tfdoctor.rules import all_rules
from tfdoctor.rules.input import input_bound
from tfdoctor.terms.errors import ConfigError
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.units import examples_rate, ms, nbytes, ratio

RULES = all_rules()
NAMES = {rule.name for rule in RULES}

FULL = """
select = ["input", "float32-matmul"]
ignore = ["python-input"]
fail-on = "warning"
rules = ["lint"]

[limits.input-bound]
share = 0.2
ready_ms = 1
"""


def parse(toml: str) -> Config:
    return Config.parse(tomllib.loads(toml), Path("pyproject.toml"))


def names(toml: str) -> set[str]:
    return {rule.name for rule in applied(parse(toml), RULES)[0]}


def refusal(toml: str) -> str:
    with pytest.raises(ConfigError) as refused:
        applied(parse(toml), RULES)
    said = str(refused.value)
    assert "\n" not in said
    return said


# What it takes


def test_every_key_is_read() -> None:
    read = parse(FULL)
    assert read.select == RuleNames(("input", "float32-matmul"), "pyproject.toml", "select")
    assert read.ignore.names == ("python-input",)
    assert read.fail_on == "warning"
    assert read.rules == (Path("lint"),)
    assert read.limits == {"input-bound": {"share": 0.2, "ready_ms": 1.0}}


def test_without_settings_every_rule_runs_as_it_comes() -> None:
    rules, settings = applied(Config(), RULES)
    assert rules == RULES
    assert (settings.off, settings.limits, settings.own) == ((), (), ())


def test_what_is_switched_off_is_told_with_its_reason() -> None:
    rules, settings = applied(parse('ignore = ["input-bound"]'), RULES)
    assert {rule.name for rule in rules} == NAMES - {"input-bound"}
    (off,) = settings.off
    titles = {rule.name: rule.doc.title for rule in RULES}
    assert (off.rule, off.title) == ("input-bound", titles["input-bound"])
    assert off.why == "ignored by pyproject.toml"


def test_what_is_not_selected_is_told_too() -> None:
    _, settings = applied(parse('select = ["input-bound"]'), RULES)
    assert {off.rule for off in settings.off} == NAMES - {"input-bound"}
    assert {off.why for off in settings.off} == {"not selected by pyproject.toml"}


@cases(
    ('select = ["input"]\nignore = ["input-bound"]', False),
    ('select = ["input-bound"]\nignore = ["input"]', True),
    ('select = ["input-bound"]\nignore = ["ALL"]', True),
    ('select = ["input-bound"]\nignore = ["input-bound"]', False),
    ('select = ["ALL"]\nignore = ["input"]', False),
    ('ignore = ["ALL"]', False),
    ("select = []", False),
)
def test_the_more_specific_choice_counts(toml: str, runs: bool) -> None:  # noqa: FBT001 - a case
    assert ("input-bound" in names(toml)) is runs


def test_a_limit_reaches_its_rule_and_is_told() -> None:
    rules, settings = applied(parse("[limits.input-bound]\nshare = 0.2"), RULES)
    (rule,) = [rule for rule in rules if rule.name == "input-bound"]
    assert rule.limits == input_bound.Limits(share=0.2)
    (told,) = settings.limits
    assert (told.rule, told.name, told.value, told.default) == ("input-bound", "share", 0.2, 0.05)


def test_a_limit_that_is_set_to_its_own_value_is_no_change() -> None:
    assert applied(parse("[limits.input-bound]\nshare = 0.05"), RULES)[1].limits == ()


def test_a_limit_of_a_rule_that_is_off_is_not_told() -> None:
    toml = 'ignore = ["input-bound"]\n[limits.input-bound]\nshare = 0.2'
    assert applied(parse(toml), RULES)[1].limits == ()


# How it refuses


@cases(
    ('selct = ["input"]', "unknown key 'selct': did you mean 'select'?"),
    (
        "qqqq = 1",
        "unknown key 'qqqq': choose from baseline, budget, fail-on, history, ignore, limits, rules, select.",
    ),
    ('select = "input"', "select must be a list of names, such as [\"input-bound\"], not 'input'."),
    ("ignore = [1]", "ignore must be a list of names"),
    ('select = ["inptu"]', "select: unknown rule or topic 'inptu': did you mean 'input'?"),
    ('select = ["zzz"]', "unknown rule or topic 'zzz': `tfdoctor rules` lists them."),
    ("[limits.zzz]\nshare = 1", "limits: unknown rule 'zzz': `tfdoctor rules` lists them."),
    ('ignore = ["input-bond"]', "ignore: unknown rule or topic 'input-bond': did you mean"),
    ('fail-on = "warn"', 'fail-on must be one of "note", "warning", "critical", "never"'),
    ("fail-on = true", "not true."),
    ('rules = "lint"', "rules must be a list of folders"),
    ("baseline = 3", 'baseline must be the name of a file, such as "tfdoctor-baseline.json", not 3.'),
    ('baseline = ""', "baseline must be the name of a file"),
    ("[budget]", "budget is empty: set at least one of step-ms, input-wait,"),
    ("[budget.gpu]", "budget.gpu is empty: set at least one of step-ms,"),
    ("budget = 3", "budget must be a table, such as { step-ms = 20 }, not 3."),
    ("[budget]\ngpu = 3", "budget.gpu must be a table, such as { step-ms = 20 }, not 3."),
    ("[budget]\nstep_ms = 3", "budget: unknown key 'step_ms': did you mean 'step-ms'?"),
    ("[budget.gpu]\ncpu = {}", "budget.gpu: unknown key 'cpu': choose from"),
    ("[budget]\nstep-ms = 0", "budget.step-ms must be above 0, not 0."),
    ("[budget.tpu]\nstep-ms = -1", "budget.tpu.step-ms must be above 0, not -1."),
    ("[budget]\nmemory-gb = inf", "budget.memory-gb must be a finite number, not inf."),
    ('[budget]\nstep-ms = "20"', "budget.step-ms must be a number, not '20'."),
    (
        "[budget]\ninput-wait = 5",
        'budget.input-wait must be a percentage between "0%" and "100%", such as "5%", not 5.',
    ),
    ('[budget]\nmatrix-unit = "101%"', "such as \"5%\", not '101%'."),
    ('[budget]\ninput-wait = "0%"', "such as \"5%\", not '0%'."),
    ('[budget]\ninput-wait = "-5%"', "such as \"5%\", not '-5%'."),
    ("limits = 3", "limits must be a table of rules, not 3."),
    ("limits.input-bound = 3", "limits.input-bound must be a table of limits"),
    ("[limits.input-bond]\nshare = 1", "unknown rule 'input-bond': did you mean 'input-bound'?"),
    ("[limits.input-bound]\nshar = 1", "unknown limit 'shar': did you mean 'share'?"),
    ('[limits.input-bound]\nshare = "1"', "limits.input-bound.share must be a number, not '1'."),
    ("[limits.input-bound]\nshare = true", "must be a number, not true."),
    ("[limits.input-bound]\nshare = nan", "must be a finite number, not nan."),
    ("[limits.input-bound]\nshare = -0.1", "must be at least 0, not -0.1."),
    ("[limits.unfused-batch-norm]\nhalf_speed = 0", "must be at least 1, not 0."),
    (
        "[limits.input-bound]\nshare = 10",
        "limits.input-bound.share must be at most 1, not 10; use `ignore` to switch the rule off.",
    ),
)
def test_what_cannot_be_meant_is_one_sentence(toml: str, said: str) -> None:
    assert said in refusal(toml)
    assert refusal(toml).startswith("pyproject.toml: ")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=80) | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
NUMBERS = st.floats(0, 1e6) | st.integers(0, 10**6)
SHARES = st.floats(0, 1) | st.integers(0, 1)


KEYS_OR_NOT = st.sampled_from(sorted(KEYS)) | st.text(max_size=8)


@given(
    st.dictionaries(KEYS_OR_NOT, VALUES, max_size=4)
    | st.fixed_dictionaries({"limits": st.dictionaries(st.text(max_size=8), VALUES, max_size=2)})
)
def test_any_table_is_read_or_refused_in_one_line(table: dict[str, Any]) -> None:
    said = ""
    try:
        applied(Config.parse(table, Path("pyproject.toml")), RULES)
    except ConfigError as refused:
        said = str(refused)
    assert said or set(table) <= set(KEYS)
    assert len(said.splitlines()) <= 1
    assert len(said) < 2500


@given(
    select=st.lists(st.sampled_from([ALL, *Topic, *sorted(NAMES)]), max_size=4),
    ignore=st.lists(st.sampled_from([ALL, *Topic, *sorted(NAMES)]), max_size=4),
)
def test_every_rule_is_applied_or_told_to_be_off(select: list[str], ignore: list[str]) -> None:
    table = {"select": [str(one) for one in select], "ignore": [str(one) for one in ignore]}
    rules, settings = applied(Config.parse(table, Path("tfdoctor.toml")), RULES)
    on, off = {rule.name for rule in rules}, {one.rule for one in settings.off}
    assert on | off == NAMES
    assert not on & off
    assert {str(name) for name in ignore} & on <= set(select)


@given(
    limits=st.fixed_dictionaries({}, optional={"share": SHARES, "ready_ms": NUMBERS}),
    fail_on=st.sampled_from(FailOn),
)
def test_what_is_written_is_what_is_read(limits: dict[str, float], fail_on: str) -> None:
    table = {"limits": {"input-bound": limits}, "fail-on": fail_on}
    read = Config.parse(table, Path("pyproject.toml"))
    rules, settings = applied(read, RULES)
    (rule,) = [rule for rule in rules if rule.name == "input-bound"]
    assert rule.limits == input_bound.Limits(**limits)
    assert read.fail_on == fail_on
    assert all(math.isfinite(one.value) and one.value != one.default for one in settings.limits)


# Budgets


BUDGETS = """\
[tool.tfdoctor.budget]
input-wait = "5%"  # step-ms stands below
step-ms = 20

[tool.tfdoctor.budget.gpu]
step-ms = 12.5
matrix-unit = "40 %"
memory-gb = 8
examples-per-second = 1_000
"""


def test_budgets_are_read_with_their_units_devices_and_lines(tmp_path: Path) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_text(f"[project]\nname = 'step-ms'\n\n{BUDGETS}")
    budget = load(path).budget
    read = [(one.key, one.device, one.limit, budget.lines[one]) for one in budget.limits]
    assert read == [
        ("input-wait", None, ratio(0.05), 5),
        ("step-ms", None, ms(20), 6),
        ("step-ms", DeviceKind.GPU, ms(12.5), 9),
        ("matrix-unit", DeviceKind.GPU, ratio(0.4), 10),
        ("memory-gb", DeviceKind.GPU, nbytes(8e9), 11),
        ("examples-per-second", DeviceKind.GPU, examples_rate(1000), 12),
    ]
    assert budget.file == path


@cases(
    ("budget = { step-ms = 20 }", 1),
    ("# step-ms\nbudget.step-ms = 20", 2),
    ('rules = [\n"step-ms",\n]\n"budget".\'step-ms\' = 20', 4),
    ("[limits.a]\nb = 1 # step-ms\n[budget]\nmemory-gb = 1\nstep-ms = 20", 5),
)
def test_a_budget_is_found_however_it_is_written(toml: str, line: int, tmp_path: Path) -> None:
    path = tmp_path / "tfdoctor.toml"
    path.write_text(toml)
    budget = load(path).budget
    assert {one.key: at for one, at in budget.lines.items()}["step-ms"] == line


def test_a_baseline_is_relative_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "tfdoctor.toml").write_text('baseline = "known.json"')
    assert find(tmp_path / "inner").baseline == tmp_path / "known.json"


# Where it is found


def test_the_nearest_folder_with_settings_counts(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text('[tool.tfdoctor]\nselect = ["scale"]')
    (tmp_path / "a" / "pyproject.toml").write_text('[tool.tfdoctor]\nselect = ["input"]')
    (inner / "pyproject.toml").write_text("[tool.ruff]\nline-length = 80")
    assert find(inner).select.names == ("input",)
    assert find(tmp_path).select.names == ("scale",)


def test_a_file_of_its_own_goes_before_the_projects(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.tfdoctor]\nselect = ["scale"]')
    (tmp_path / "tfdoctor.toml").write_text('select = ["input"]')
    assert find(tmp_path).select == RuleNames(("input",), "tfdoctor.toml", "select")


def test_an_empty_table_ends_the_search(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "tfdoctor.toml").write_text('select = ["input"]')
    (tmp_path / "inner" / "pyproject.toml").write_text("[tool.tfdoctor]")
    assert find(tmp_path / "inner").select.names == (ALL,)


def test_folders_of_rules_are_relative_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "tfdoctor.toml").write_text('rules = ["lint"]')
    assert find(tmp_path / "inner").rules == (tmp_path / "lint",)


@cases(
    (".", False),
    ("..", False),
    ("report.json", False),
    ("run", True),
    ("run/x.xplane.pb", True),
    ("../other", True),
)
def test_the_rules_of_settings_that_lie_in_what_is_read_are_not_loaded(
    read: str,
    loaded: bool,  # noqa: FBT001 - by pytest
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They are code, and may have come with it; all else of the settings stays."""
    project = tmp_path / "project"
    (project / "run").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    (project / "tfdoctor.toml").write_text('rules = ["lint"]\nselect = ["scale"]')
    monkeypatch.chdir(project)
    notes: list[str] = []
    config = find(Path(), notes.append, [read])
    assert config.select.names == ("scale",)
    assert bool(config.rules) == loaded
    assert len(notes) == (not loaded)


@cases(
    ("tfdoctor.json", "."),
    ("tfdoctor.json", "sub/deeper"),
    ("plugins/profile/run/host.xplane.pb", "."),
    ("plugins/profile/run/host.xplane.pb", "plugins/profile/run"),
    ("host.xplane.pb", "."),
    ("workers/0/tfdoctor.json", "."),
    ("processes/1/agent.json", "."),
)
@pytest.mark.parametrize("name", ["tfdoctor.toml", "pyproject.toml"])
def test_settings_that_came_with_a_recording_set_nothing(mark: str, folder: str, name: str, tmp_path: Path) -> None:
    """Their rules are code of whoever made the recording."""
    (tmp_path / "tfdoctor.toml").write_text('select = ["scale"]')
    recording = tmp_path / "recording"
    (recording / folder).mkdir(parents=True)
    (recording / mark).parent.mkdir(parents=True, exist_ok=True)
    (recording / mark).write_text("{}")
    own = recording / folder / name
    own.write_text('rules = ["lint"]' if name == "tfdoctor.toml" else '[tool.tfdoctor]\nrules = ["lint"]')
    notes: list[str] = []
    assert find(recording / folder, notes.append) == find(tmp_path)
    (note,) = notes
    assert str(own) in note
    assert "--config" in note
    assert load(own).rules == (own.parent / "lint",)


def test_without_a_file_there_are_no_settings(tmp_path: Path) -> None:
    assert find(tmp_path).by == ""


def test_a_named_file_is_read_whatever_it_is_called(tmp_path: Path) -> None:
    (tmp_path / "ci.toml").write_text('fail-on = "note"')
    (tmp_path / "pyproject.toml").write_text('[tool.tfdoctor]\nfail-on = "critical"')
    assert load(tmp_path / "ci.toml").fail_on == "note"
    assert load(tmp_path / "pyproject.toml").fail_on == "critical"


@cases(
    ("pyproject.toml", b"[tool.ruff]", "has no table [tool.tfdoctor]"),
    ("pyproject.toml", b"tool = 3", "has no table [tool.tfdoctor]"),
    ("ci.toml", b"[tool.tfdoctor]", "only pyproject.toml has the table [tool.tfdoctor]"),
    ("pyproject.toml", b"[tool]\ntfdoctor = 3", "[tool.tfdoctor] must be a table, not 3."),
    ("tfdoctor.toml", b"select = [", "is not valid TOML"),
    ("tfdoctor.toml", b"select = '\xff'", "its encoding is not UTF-8"),
    ("nothing", None, "cannot be read (No such file or directory)."),
    ("folder", None, "cannot be read"),
)
def test_a_file_that_cannot_be_used_is_one_sentence(
    name: str, content: bytes | None, said: str, tmp_path: Path
) -> None:
    (tmp_path / "folder").mkdir()
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ConfigError) as refused:
        load(tmp_path / name)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


# The reference


def test_the_example_of_the_reference_is_read() -> None:
    page = document.configuration_page(RULES)
    (toml,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    table = tomllib.loads(toml)["tool"]["tfdoctor"]
    _, settings = applied(Config.parse(table, Path("pyproject.toml")), RULES)
    assert [off.rule for off in settings.off] == ["depthwise-convolution"]
    assert [limit.value for limit in settings.limits] == [0.1]


def test_the_reference_has_every_key_and_every_limit() -> None:
    page = document.configuration_page(RULES)
    assert all(f"| `{key}` |" in page for key in (*KEYS, *BUDGET_KEYS))
    assert "| [input-bound](../rules/input-bound.md) | `share` | 0.05 |" in page
