"""Everything there is, is documented, and nothing that is documented is gone."""

import doctest
from types import FrameType

import typer

from scripts import document
from scripts.quoted import FIGURE, QuotedError, diagnosed, figures_filled
from tests.kit import *
from tfdoctor.cli import FOUND, USAGE, app, main
from tfdoctor.rules import all_rules
from tfdoctor.terms.verdict import Finding
from tfdoctor.trace import xprof

ROOT = Path(__file__).parent.parent
PAGES = sorted(path for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
GROUP = typer.main.get_command(app)
COMMANDS = GROUP.commands.items()  # type: ignore[attr-defined] # typer gives a group


def read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def test_the_generated_pages_are_fresh() -> None:
    pages = document.pages()
    stale = [path.name for path, text in pages.items() if path.read_text(encoding="utf-8") != text]
    assert stale == [], "run `make docs`"


def test_every_command_and_option_is_documented() -> None:
    page = read("docs/reference/cli.md")
    assert {name for name, _ in COMMANDS} == set(re.findall(r"^## tfdoctor (\w+)$", page, re.MULTILINE))
    for _, command in COMMANDS:
        for parameter in command.params:
            assert parameter.param_type_name == "argument" or f"`{parameter.opts[0]}" in page


OWN_WORDS = re.compile(r" (?:-m|--) .*| (\S+\.py) .*|[|>] .*")
"""Where the words of tfdoctor end in a command: before those of the program, of a pipe or of a file."""


def _commands(page: Path) -> Iterator[str]:
    """Yield the commands of tfdoctor in the listings and the sentences of a page."""
    text = page.read_text(encoding="utf-8")
    listing = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
    for block in listing.findall(text):
        yield from re.findall(r"^\s*tfdoctor ([a-z]+ .*)", block, re.MULTILINE)
    for quoted in re.findall(r"`tfdoctor ([a-z]+ [^`]*)`", listing.sub("", text)):
        yield " ".join(quoted.split())


def test_the_commands_of_pages_have_options_that_exist() -> None:
    assert [(page.name, wrong) for page in PAGES for wrong in _wrong_commands(page)] == []


def _wrong_commands(page: Path) -> Iterator[str]:
    for line in _commands(page):
        name, *words = shlex.split(OWN_WORDS.sub(r" \1", line), comments=True)
        command = dict(COMMANDS)[name]
        context = command.context_class(command, info_name=name)
        try:
            command.make_parser(context).parse_args(words)
        except USAGE as error:
            yield f"{line}: {error}"


def test_every_exit_code_is_documented() -> None:
    page = read("docs/reference/exit-codes.md")
    for code in (0, 1, TfdoctorError.exit_code, FOUND):
        assert re.search(rf"^\| {code} \|", page, re.MULTILINE)


def test_every_kind_of_error_is_documented_and_drawn() -> None:
    for kind in TfdoctorError.__subclasses__():
        assert f"`{kind.__name__}`" in read("docs/reference/exit-codes.md")
        drawn = re.search(rf"── {kind.__name__} +(\d+) ", read("src/tfdoctor/terms/errors.py"))
        assert drawn
        assert int(drawn[1]) == kind.exit_code


def test_every_rule_has_a_page_and_a_line_in_the_index() -> None:
    for rule in all_rules():
        assert (ROOT / "docs" / "rules" / f"{rule.name}.md").is_file()
        assert f"({rule.name}.md)" in read("docs/rules/index.md")


def test_links_within_the_project_lead_somewhere() -> None:
    assert [(page.name, link) for page in PAGES for link in _dead_links(page)] == []


def _dead_links(page: Path) -> Iterator[str]:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        if not (page.parent / link).exists():
            yield link


def test_the_way_of_a_figure_is_as_the_page_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    page = ROOT / "docs" / "explanation" / "how-a-figure-is-made.md"
    failed, tried = doctest.testfile(str(page), module_relative=False)
    assert tried
    assert not failed


WALK = re.compile(r"^\| \d+ \| (.*?) \|", re.MULTILINE)


@cases((0, 18, "cpu-float32-convnet"), (-1, 10, "cpu-outside-steps"), ids=["device", "python"])
def test_the_walk_is_true(way: int, rows: int, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    walk = WALK.findall(read("docs/explanation/how-a-figure-is-made.md"))
    named = [re.findall(r"src/(tfdoctor/[\w/.]+)", row)[way] for row in walk[:rows]]
    assert len(named) == rows
    sample = str(ROOT / "sample_traces" / name)
    monkeypatch.setattr(xprof, "LARGEST_BYTES", -1)  # no second opinion
    monkeypatch.setattr(sys, "argv", ["tfdoctor", "report", sample, "--out", str(tmp_path)])
    entered = _entered(main)
    assert [module for module in named if not any(e.endswith(module) for e in entered)] == []


def _entered(call: Callable[[], object]) -> Iterator[str]:
    """Return the files whose functions a call enters, one after the other."""
    files: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and files[-1:] != [frame.f_code.co_filename]:
            files.append(frame.f_code.co_filename)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        with pytest.raises(SystemExit, match=r"^0$"):
            call()
    finally:
        sys.setprofile(before)
    return iter(files)


def test_every_make_target_is_in_the_guide_for_contributors() -> None:
    for target in re.findall(r"^([a-z]+):.*## ", read("Makefile"), re.MULTILINE):
        assert target == "help" or f"`make {target}" in read("CONTRIBUTING.md")


QUOTING = [path for path in PAGES if re.search(r"<!-- (figure|sample|account) ", path.read_text("utf-8"))]
"""Pages with figures from the reports on samples."""

MEASURED = re.compile(r"\d[\d,.]*(?=(?:\s(?:ms|s|%)|\N{MULTIPLICATION SIGN})(?!\w))")
"""A number with a unit in which reports measure."""

quoting = pytest.mark.parametrize("page", QUOTING, ids=lambda path: path.name)


def test_the_pages_that_quote_reports_are_known() -> None:
    assert {"README.md", "tutorial.md", "how-a-figure-is-made.md"} <= {page.name for page in QUOTING}


@quoting
def test_no_figure_in_the_text_is_typed(page: Path) -> None:
    """Each is generated, or stands in an output that the same section shows."""
    for section in re.split(r"^##+ ", page.read_text("utf-8"), flags=re.MULTILINE):
        shown = re.findall(r"```.*?```", section, re.DOTALL)
        text = re.sub(r"```.*?```|`[^`]*`", "", FIGURE.sub("", section), flags=re.DOTALL)
        there = {number for output in shown for number in re.findall(r"\d[\d.]*", output)}
        assert set(MEASURED.findall(text)) <= there, section.splitlines()[0]


@quoting
def test_no_generated_figure_starts_a_line(page: Path) -> None:
    """There the comment would begin a block, and the rest of its line would be no Markdown."""
    assert re.findall(r"^[\s>*-]*<!-- figure .*", page.read_text("utf-8"), re.MULTILINE) == []


def test_a_figure_of_a_page_is_that_of_the_report() -> None:
    step = diagnosed("cpu-input-bound").steps.shown_ms
    marked = "Steps of <!-- figure cpu-input-bound steps.shown_ms ms -->{}<!-- /figure -->."
    assert figures_filled(marked.format("1 ms")) == marked.format(f"{step:.1f} ms")


@each("steps.missing_ms", "results.no-such-rule.saving", "results.idle-device.saving")
def test_a_figure_that_the_report_lacks_stops_the_build(path: str) -> None:
    with pytest.raises(QuotedError, match="cpu-input-bound"):
        figures_filled(f"<!-- figure cpu-input-bound {path} saves --><!-- /figure -->")


def test_the_line_that_the_tutorial_explains_is_the_one_that_the_report_names() -> None:
    results = {result.rule.name: result for result in diagnosed("cpu-input-bound").results}
    finding = results["python-input"].outcome
    assert isinstance(finding, Finding)
    assert finding.at
    line = read("examples/input_bound.py").splitlines()[finding.at.line - 1]
    assert line.strip() == "dataset = dataset.map(prepare)"
    assert "`dataset.map(prepare)`" in read("docs/tutorial.md")
