"""What is tried: patches of the user's, environment variables, and what cannot be."""

from tests.trial.kit import *
from tests.trial.test_diffs import DIFF


@cases(
    ({"only": ("cache-order",), "patches": ("a.diff", "cache-order=a.diff"), "environment": ("A=1",)}, ""),
    ({"only": ("nope",)}, "--only nope: there is no such rule"),
    ({"patches": ("nope=a.diff",)}, "--patch nope: there is no such rule"),
    ({"patches": ("none.diff",)}, "cannot be read"),
    ({"patches": ("notes.txt",)}, "is no diff"),
    ({"patches": ("=a.diff",)}, "--patch =a.diff: write RULE=DIFF"),
    ({"patches": ("cache-order=",)}, "--patch cache-order=: write RULE=DIFF"),
    *(({"environment": (one,)}, "write NAME=VALUE") for one in ("NAME", "=1", "A B=1", "MY-TOKEN=secret")),
)
def test_what_needs_no_recording_is_checked_before_one_is_made(
    asked: dict[str, tuple[str, ...]], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.diff").write_text(DIFF)
    Path("notes.txt").write_text("hello")
    fields: dict[str, Any] = {**asked, "patches": tuple(map(Path, asked.get("patches", ())))}
    request = Request(consent=lambda _: None, say=print, **fields)
    with pytest.raises(InputError, match=why) if why else nullcontext() as raised:
        of_recording.check(request, {"cache-order"})
    assert "secret" not in str(raised and raised.value)


SAMPLE = Path(__file__).parents[2] / "sample_traces" / "cpu-input-bound"


@pytest.fixture(scope="module")
def diagnosis() -> Diagnosis:
    rules = [rule for rule in all_rules() if rule.name == "python-input"]
    return diagnose(Recording.open(SAMPLE), rules, "train.py", ask_xprof=False)


@each("mine.diff", "rate=1.diff", "python-input=mine.diff")
def test_only_a_patch_for_a_rule_has_a_promise(
    name: str, tmp_path: Path, diagnosis: Diagnosis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trap: a file may have an equals sign in its name."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("x = 1\ny = 3\n")
    Path(name.removeprefix("python-input=")).write_text(DIFF)
    variant = of_recording.patch_variant(Path(name), tmp_path, diagnosis)
    of_rule = (("python-input",), sure(diagnosis.results[0].saving)) if "python-input" in name else ((), None)
    assert (variant.rules, variant.promised) == of_rule
    assert (variant.files, variant.edited) == ({tmp_path / "train.py": b"x = 2\ny = 3\n"}, False)
    with pytest.raises(InputError, match="--patch late-shrink: the report has no such finding"):
        of_recording.patch_variant(Path("late-shrink=mine.diff"), tmp_path, diagnosis)


def test_a_patch_for_a_rule_goes_together_with_edits_of_others(tmp_path: Path) -> None:
    """Trap: the patch names a rule, and the text is its own, not that of the rule's edit."""
    target = tmp_path / "train.py"
    target.write_text("x = 1\ny = 3\n")
    own = Variant("mine.diff", files={target: b"x = 2\ny = 3\n"}, rules=("cache",), patched=True)
    both = proposals.joined(Recording.open(SAMPLE), [own, Variant("A=1", environment={"A": "1"})], {})
    assert (both.files, both.parts) == (own.files, ("mine.diff", "A=1"))


@cases(
    (["HF_TOKEN=mine"], ["HF_TOKEN=***"]),
    (["A_URL=https://me:pw1@host/x"], ["A_URL=https://me:***@host/x"]),
    (["HF_TOKEN=mine", "A=1", "HF_TOKEN=yours"], ["HF_TOKEN=***", "A=1", "HF_TOKEN=*** (2)"]),
)
def test_a_credential_is_set_and_not_shown(settings: list[str], names: list[str]) -> None:
    """Trap: figures are kept by name, so two values of a hidden variable need two names."""
    variants = distinct(proposals.of_environment(settings))
    assert [variant.name for variant in variants] == names
    set_to = [f"{name}={value}" for one in variants for name, value in one.environment.items()]
    assert set_to == settings


def test_the_same_change_is_tried_once_and_others_of_one_name_keep_their_own_figures() -> None:
    first, second = Variant("a", {Path("x"): b"1"}), Variant("b", {Path("x"): b"1"})
    one, other = (Variant("fix.diff", environment={"A": value}) for value in "12")
    assert [variant.name for variant in distinct([first, second, one, other])] == ["a", "fix.diff", "fix.diff (2)"]


PROMISED = Saving(ms_per_step=5.0, share=0.5, bound=Bound.EXPECTED, how="half of the step")
SAVES = Measured(share=0.3, low=0.25, high=0.35, difference=Difference.SAVES)
UNSURE = replace(SAVES, low=-0.25, difference=Difference.UNKNOWN)


@cases((None, 0.1, 3), (None, None, 0), (UNSURE, 0.1, 3), (SAVES, 0.1, 3), (SAVES, 0.2, 0))
def test_promises_that_were_not_measured_are_not_known_to_hold(
    measured: Measured | None, limit: float | None, code: int
) -> None:
    told = Trials(rows=(Trial(name="a", promised=PROMISED, measured=measured),))
    assert of_recording.exit_code(replace(tried(), trials=told), limit) == code


FLIPS = "import tensorflow as tf\ndata = data.map(flip)\ndata = data.map(scale)\n"


@cases(
    (2, frozenset({"RandomUniform"}), True),
    (3, frozenset({"RandomUniform"}), False),  # another map
    (2, frozenset(), False),  # stateless, or no random numbers
    (2, frozenset({"LookupTableFindV2"}), False),
    (2, None, False),  # not recorded
)
def test_a_map_that_draws_random_numbers_draws_them_in_another_order_when_parallel(
    line: int, stateful: frozenset[str] | None, *, reorders: bool, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(FLIPS)
    made, function = (recorded(tmp_path), RecordedFunction("flip", stateful=stateful))
    stage = RecordedDataset(0, "_MapDataset", function=function, at=(str(tmp_path / "train.py"), 2))
    recording = replace(made, program=replace(sure(made.program), datasets=(stage,)))
    found = finding("sequential-map", remedy("parallel-map", line=line))
    ((variant, _),), _ = proposals.edits(recording, replace(tried(), results=(found,)), [], keep=False)
    both = proposals.joined(recording, [variant], {"sequential-map": found})
    assert (variant.exact, variant.reorders, both.reorders) == (True, reorders, reorders)


def test_what_saves_most_of_the_run_is_tried_first_and_what_saves_nothing_only_where_it_is_asked_for(
    tmp_path: Path,
) -> None:
    (tmp_path / "train.py").write_text(FLIPS)
    shares = {"small": 0.02, "useless": 0.0, "large": 0.4}
    savings = {**{name: replace(PROMISED, share=share) for name, share in shares.items()}, "unknown": None}
    results = (replace(finding(name, remedy("parallel-map", line=2)), saving=one) for name, one in savings.items())
    report = replace(tried(), results=tuple(results))

    def proposed(*only: str) -> tuple[list[str], list[NotTried]]:
        variants, left = proposals.edits(recorded(tmp_path), report, only, keep=False)
        return [variant.name for variant, _ in variants], left

    names, (useless,) = proposed()
    assert (names, useless.name) == (["large", "small", "unknown"], "useless")
    assert "--only useless" in useless.why
    assert proposed("useless") == (["useless"], [])
