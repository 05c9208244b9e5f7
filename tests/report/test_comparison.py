"""Each rendering of each kind of comparison, byte for byte; and the page in a browser."""

from tests.report.kit import *
from tfdoctor.diagnosis.step import PARTS

KINDS = {
    "faster": "a step is faster, with findings that are new, gone and no longer checked",
    "alike": "no difference",
    "unlike": "unlike runs, whose shares are compared; hostile names",
    "slower": "a step is slower, and the gate fails",
    "unknown": "two runs that differ too much in themselves, with few long steps after the change",
    "whole": "runs that train nothing and are known whole: predict was called for each example",
    "sooner": "the same traced step, in a run whose functions are traced once: what users wait for",
    "longer": "a slower step in a run of more epochs",
}
"""What `golden/diff-NAME.json` holds."""


@cache
def known(kind: str) -> RunComparison:
    content = json.loads((Path(__file__).with_name("golden") / f"diff-{kind}.json").read_text("utf-8"))
    for side in ("before", "after"):  # a file has names in alphabetical order
        parts = content[side]["parts_ms"]
        content[side]["parts_ms"] = {part: parts[part] for part in PARTS if part in parts}
    found: RunComparison = converted(content, RunComparison)
    return found


def step_of(kind: str, **changes: Any) -> RunComparison:
    """Return a comparison with changes of what its steps show."""
    return replace(known(kind), step=replace(sure(known(kind).step), **changes))


@each(*KINDS)
def test_files_and_terminal(kind: str, golden: Compare) -> None:
    for file_format in comparison.FORMATS:
        golden(f"diff-{kind}.{file_format}", comparison.render(file_format, known(kind)))
    golden(f"diff-{kind}.txt", capture(comparison.sections, known(kind), width=80, color=False))


MINUS = "\N{MINUS SIGN}"
LONGER = PartChange(part="device", before=10.0, after=13.5, changed=True)


@each("html", "md")
def test_parts_that_make_up_for_each_other_are_named_where_the_whole_step_is_the_same(file_format: str) -> None:
    alike = known("alike")
    gone = PartChange(part="input", before=4.0, after=0.3, changed=True)
    one = comparison.render(file_format, replace(alike, parts=(*alike.parts, LONGER)))
    two = comparison.render(file_format, replace(alike, parts=(gone, LONGER)))
    assert f"no difference ({MINUS}5.0 to 4.0 %), but a part of it changed: device 10.0 ms → 13.5 ms." in one
    assert "but parts of it changed: input wait 4.00 ms → 0.30 ms, device 10.0 ms → 13.5 ms." in two
    assert "No difference" not in one + two


def test_the_interval_is_given_however_wide_it_is() -> None:
    wide = {"direction": Direction.UNKNOWN, "doubt": Undecided.WIDE, "low": -0.71, "high": 1.09, "least": 1.2}
    rendered = comparison.render("md", step_of("alike", **wide))
    assert f"Unknown whether the step changed ({MINUS}109 to 71 %): the 95 % interval is wider" in rendered
    assert "only a run of another magnitude would show a difference" in rendered


def test_a_difference_that_shows_is_not_said_not_to_show() -> None:
    rendered = comparison.render("md", step_of("faster", least=1.2))
    assert [one in rendered for one in ("faster per step", "would show a difference")] == [True, False]


def test_the_headline_begins_with_a_run_that_took_clearly_less() -> None:
    sooner, run = known("sooner"), sure(known("sooner").run)
    said = "The whole run took 3.6 s instead of 10.5 s, mostly because of tracing and"
    assert comparison.headline(sooner).startswith(said)
    early = replace(sooner, run=replace(run, ended_early=True))
    little = replace(sooner, run=replace(run, after_ms=0.95 * run.before_ms))
    for other in (known("longer"), early, little):  # the longer one has more epochs
        assert "whole run" not in comparison.headline(other)
    assert any("--stop-after" in note for note in comparison.notes(early))


def test_an_unwritable_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot be written"):
        write_texts(tmp_path / "file", {"tfdoctor-diff.md": ""})


def keys(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from keys(item)


def test_every_field_of_the_json_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/json-comparison.md").read_text()
    documented = set(re.findall(r"`\.?(?:\w+\.)?(\w+)(?:\[\])?`", page))
    for kind in KINDS:
        shown = set(keys(json.loads(comparison.render("json", known(kind)))))
        assert shown - documented <= {*PARTS, "path", "line"}


def test_nothing_is_written_where_one_file_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "tfdoctor-diff.md").mkdir()
    with pytest.raises(OutputError, match=r"tfdoctor-diff\.md is not a file"):
        write_texts(tmp_path, {"tfdoctor-diff.html": "", "tfdoctor-diff.md": ""})
    assert [path.name for path in tmp_path.iterdir()] == ["tfdoctor-diff.md"]


def test_a_sentence_of_a_finding_that_wraps_stays_below_it() -> None:
    text = capture(comparison.sections, known("unlike"), width=40, color=False)
    assert re.search(r"^  </script><img src=x\n  onerror", text, re.MULTILINE)


@cases((0.81, "at least 81 % slower"), (4.55, "magnitude"))
def test_a_difference_that_says_nothing_has_no_figure(least: float, said: str) -> None:
    told = capture(comparison.sections, step_of("unknown", least=least), width=200, color=False)
    assert said in " ".join(told.split())
    assert "455 %" not in told
