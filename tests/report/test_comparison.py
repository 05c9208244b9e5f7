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


LONGER = PartChange(part="device", before=10.0, after=13.5, changed=True)
GONE = PartChange(part="input", before=4.0, after=0.3, changed=True)
WIDE = {"direction": Direction.UNKNOWN, "doubt": Undecided.WIDE, "low": -0.71, "high": 1.09, "least": 1.2}
OF_RUN = sure(known("sooner").run)
LITTLE = replace(OF_RUN, after_ms=0.95 * OF_RUN.before_ms)
VARIATIONS = {
    "one part of the same step": replace(known("alike"), parts=(*known("alike").parts, LONGER)),
    "parts that make up for each other": replace(known("alike"), parts=(GONE, LONGER)),
    "the interval is given however wide it is": step_of("alike", **WIDE),
    "a difference that shows is not said not to show": step_of("faster", least=1.2),
    "a run that took clearly less": known("sooner"),
    "a run of more epochs": known("longer"),
    "a run that was ended early": replace(known("sooner"), run=replace(OF_RUN, ended_early=True)),
    "a run that took little less": replace(known("sooner"), run=LITTLE),
    "a figure of a difference": step_of("unknown", least=0.81),
    "a difference that says nothing has no figure": step_of("unknown", least=4.55),
}


def test_what_is_said_of_each_comparison(golden: Compare) -> None:
    texts = [
        "".join(f"{line}\n" for line in (f"## {name}", "", comparison.headline(made), *comparison.notes(made)))
        for name, made in VARIATIONS.items()
    ]
    golden("diff-said.txt", "\n".join(texts))


@cases(*product(("one part of the same step", "parts that make up for each other"), ("html", "md")))
def test_the_headline_is_that_of_the_files(name: str, file_format: str) -> None:
    made = comparison.render(file_format, VARIATIONS[name])
    assert comparison.headline(VARIATIONS[name]) in made
    assert "No difference" not in made


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
