"""`[tool.tfdoctor]`: what it takes, where it is found, and how it refuses."""

from scripts import document
from tests.facts.kit import Told, fields
from tests.kit import *
from tfdoctor.diagnosis.rule import Topic
from tfdoctor.rulebook.book import applied
from tfdoctor.rulebook.config import ALL, KEYS, Config, FailOn, find, load
from tfdoctor.rulebook.config.budget import BUDGET_KEYS
from tfdoctor.rules import all_rules
from tfdoctor.rules.input import input_bound

TOLD = Told()
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


def told(*lines: str) -> dict[str, object]:
    """Return which rules apply by these lines of settings, with which limits, and why others do not."""
    rules, settings = applied(parse("\n".join(lines)), RULES)
    others = {rule.name for rule in rules} - {"input-bound"}
    return {
        "input-bound": [str(rule.limits) for rule in rules if rule.name == "input-bound"],
        "others": "none" if not others else "all" if others >= NAMES - {"input-bound"} else "some",
        "off": sorted({one.why for one in settings.off}),
        **{f"{one.rule} is off": one for one in settings.off if one.rule == "input-bound"},
        **fields(settings, "limits own"),
    }


def by_lines(*settings: tuple[str, ...] | str) -> dict[str, tuple[str, ...]]:
    """Return cases named by the lines of their settings."""
    cases = ((lines,) if isinstance(lines, str) else lines for lines in settings)
    return {" ⏎ ".join(lines): lines for lines in cases}


# What it takes

TOLD.add("every key is read", lambda: parse(FULL))
TOLD.add("without settings every rule runs as it comes", told)
TOLD[told] = by_lines(
    'ignore = ["input-bound"]',
    'select = ["input-bound"]',
    # The more specific choice counts:
    ('select = ["input"]', 'ignore = ["input-bound"]'),
    ('select = ["input-bound"]', 'ignore = ["input"]'),
    ('select = ["input-bound"]', 'ignore = ["ALL"]'),
    ('select = ["input-bound"]', 'ignore = ["input-bound"]'),
    ('select = ["ALL"]', 'ignore = ["input"]'),
    *('ignore = ["ALL"]', "select = []"),
    # A limit reaches its rule and is told, unless it is set to its own value or its rule is off:
    *(("[limits.input-bound]", "share = 0.2"), ("[limits.input-bound]", "share = 0.05")),
    ('ignore = ["input-bound"]', "[limits.input-bound]", "share = 0.2"),
)

# How it refuses

TOLD[told] = by_lines(
    *('selct = ["input"]', "qqqq = 1", 'select = "input"', "ignore = [1]", 'select = ["inptu"]'),
    *('select = ["zzz"]', 'ignore = ["input-bond"]', 'fail-on = "warn"', "fail-on = true", 'rules = "lint"'),
    *("baseline = 3", 'baseline = ""', "[budget]", "[budget.gpu]", "budget = 3"),
    *(("[budget]", "gpu = 3"), ("[budget]", "step_ms = 3"), ("[budget.gpu]", "cpu = {}")),
    *(("[budget]", "step-ms = 0"), ("[budget.tpu]", "step-ms = -1"), ("[budget]", "memory-gb = inf")),
    *(("[budget]", 'step-ms = "20"'), ("[budget]", "input-wait = 5"), ("[budget]", 'matrix-unit = "101%"')),
    *(("[budget]", 'input-wait = "0%"'), ("[budget]", 'input-wait = "-5%"')),
    *("limits = 3", "limits.input-bound = 3", ("[limits.zzz]", "share = 1")),
    *(("[limits.input-bond]", "share = 1"), ("[limits.input-bound]", "shar = 1")),
    *(("[limits.input-bound]", f"share = {value}") for value in ('"1"', "true", "nan", "-0.1", "10")),
    ("[limits.unfused-batch-norm]", "half_speed = 0"),
)

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


def config(text: str, folder: Path) -> Config:
    (folder / "tfdoctor.toml").write_text(text)
    return load(folder / "tfdoctor.toml")


@TOLD
def budgets_are_read_with_their_units_devices_and_lines(folder: Path) -> object:
    path = folder / "pyproject.toml"
    path.write_text(f"[project]\nname = 'step-ms'\n\n{BUDGETS}")
    budget = load(path).budget
    lines = {f"line {budget.lines[one]}": one for one in budget.limits}
    return {"file": budget.file} | lines


TOLD[lambda text, folder: config(text, folder).budget.lines] = {
    "a budget in a table of one line": "budget = { step-ms = 20 }",
    "a budget by a path, below a comment": "# step-ms\nbudget.step-ms = 20",
    "a budget in quotes, below a list": 'rules = [\n"step-ms",\n]\n"budget".\'step-ms\' = 20',
    "a budget below others": "[limits.a]\nb = 1 # step-ms\n[budget]\nmemory-gb = 1\nstep-ms = 20",
}

# Where it is found: the nearest folder with settings counts, and what they name is relative to their file

SCALE, INPUT, RUFF = '[tool.tfdoctor]\nselect = ["scale"]', '[tool.tfdoctor]\nselect = ["input"]', "[tool.ruff]"


def sought(files: dict[str, str], start: str, folder: Path) -> object:
    (folder / "a" / "b").mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    found = find(folder / start)
    return fields(found, "by select rules baseline")


NESTED = {"pyproject.toml": SCALE, "a/pyproject.toml": INPUT, "a/b/pyproject.toml": RUFF}
TOLD[sought] = {
    "settings of the folder above": (NESTED, "a/b"),
    "settings of the folder itself": (NESTED, ""),
    "a file of its own goes before": ({"pyproject.toml": SCALE, "tfdoctor.toml": 'select = ["input"]'}, ""),
    "an empty table ends the search": (
        *({"tfdoctor.toml": 'select = ["input"]', "a/pyproject.toml": "[tool.tfdoctor]"}, "a"),
    ),
    "folders of rules": ({"tfdoctor.toml": 'rules = ["lint"]'}, "a"),
    "a baseline": ({"tfdoctor.toml": 'baseline = "known.json"'}, "a"),
    "no settings": ({}, "a"),
}


@cases((".", 0), ("..", 0), ("report.json", 0), ("run", 1), ("run/x.xplane.pb", 1), ("../other", 1))
def test_the_rules_of_settings_that_lie_in_what_is_read_are_not_loaded(
    read: str, loaded: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are code, and may have come with it; all else of the settings stays."""
    project = tmp_path / "project"
    (project / "run").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    (project / "tfdoctor.toml").write_text('rules = ["lint"]\nselect = ["scale"]')
    monkeypatch.chdir(project)
    notes: list[str] = []
    config = find(Path(), notes.append, [read])
    assert (config.select.names, len(config.rules), len(notes)) == (("scale",), loaded, 1 - loaded)


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
    assert re.search(f"{re.escape(str(own))}.*--config", note)
    assert load(own).rules == (own.parent / "lint",)


def named(name: str, content: bytes | None, folder: Path) -> object:
    """Return when a job fails by a file that is named."""
    (folder / "folder").mkdir()
    if content is not None:
        (folder / name).write_bytes(content)
    return load(folder / name).fail_on


TOLD[named] = {
    "a named file": ("ci.toml", b'fail-on = "note"'),
    "a named project": ("pyproject.toml", b'[tool.tfdoctor]\nfail-on = "critical"'),
    "a project without our table": ("pyproject.toml", b"[tool.ruff]"),
    "a project without tables": ("pyproject.toml", b"tool = 3"),
    "our table in another file": ("ci.toml", b"[tool.tfdoctor]"),
    "a number for our table": ("pyproject.toml", b"[tool]\ntfdoctor = 3"),
    "half a list": ("tfdoctor.toml", b"select = ["),
    "no UTF-8": ("tfdoctor.toml", b"select = '\xff'"),
    "no file": ("nothing", None),
    "a folder": ("folder", None),
}

test_configurations = TOLD.test("configurations")

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
