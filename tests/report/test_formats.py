"""The formats of a report: what each contains, escapes and states."""

from tests.report.kit import *
from tfdoctor.diagnosis.step import PARTS
from tfdoctor.report.files import write
from tfdoctor.report.formats import render
from tfdoctor.stored.report import read


def test_a_module_is_a_format() -> None:
    assert FORMATS == ("github", "gitlab", "html", "json", "llm", "md", "sarif")


@cases(*product(FORMATS, diagnoses.ALL))
def test_everything_is_rendered_and_can_be_written(file_format: str, kind: str) -> None:
    assert rendered(file_format, kind).encode("utf-8").endswith(b"\n")


def test_importing_the_package_loads_no_library() -> None:
    code = "import sys, tfdoctor.report.formats; print({'plotly', 'jinja2', 'rich'} & set(sys.modules))"
    command = [sys.executable, "-c", code]
    assert subprocess.check_output(command, text=True, env={"PYTHONPATH": "src"}) == "set()\n"


def test_a_format_that_fails_does_not_lose_the_others(tmp_path: Path) -> None:
    with pytest.raises(ModuleNotFoundError) as caught:
        write(diagnoses.full(), tmp_path, ["no_such_format", "md"])
    assert "no_such_format" in caught.value.__notes__[0]
    assert (tmp_path / "report.md").is_file()


# Each rendering of each kind of diagnosis, byte for byte


CUT_FOR_A_MODEL = {"hostile", "hostile-run"}
"""Diagnoses that are too long for it."""
GOLDEN = {
    "json": tuple(STORED),
    "md": (*STORED, "hostile", "hostile-run"),
    "txt": (*STORED, "hostile", "hostile-run"),
    "llm.txt": ("full", "tried", "gated", "run", "hostile"),
    "html": ("full", "no-steps", "several-hosts", "unexplained", "tried", "caused", "gated", "run"),
    **dict.fromkeys(("sarif.txt", "gitlab.txt", "github.txt"), ("full", "gated", "run")),
}
"""The kinds of each ending; "txt" is what a terminal shows."""


@cases(*((ending, kind) for ending, kinds in GOLDEN.items() for kind in kinds))
def test_rendering(ending: str, kind: str, golden: Compare) -> None:
    made = diagnoses.ALL[kind]()
    match ending:
        case "txt":
            shown = terminal.render(made, width=80, color=False)
        case "html":  # without the code of plotly
            shown = html.render_without_plotly(finished(made))
        case "md" | "llm.txt":
            shown = rendered(ending.removesuffix(".txt"), kind)
        case _:
            shown = render(ending.removesuffix(".txt"), finished(made))
    golden(f"{kind}.{ending}", shown)


@each(*diagnoses.ALL)
def test_text_for_a_language_model_is_short(kind: str) -> None:
    text = rendered("llm", kind)
    assert len(text.encode()) <= llm.LIMIT
    assert text.endswith(llm.CUT) is (kind in CUT_FOR_A_MODEL)


# The page as a file


ASSETS = {"src", "href", "data", "action", "srcset", "poster"}


class Elements(HTMLParser):
    """The elements of a page, with their attributes and the text of scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []
        self.texts: dict[str, str] = {}
        self._open = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {name: value or "" for name, value in attrs}))
        self._open = dict(attrs).get("id") or tag

    def handle_data(self, data: str) -> None:
        self.texts[self._open] = self.texts.get(self._open, "") + data


@each(*diagnoses.ALL)
def test_a_page_is_whole_alone_and_can_be_read_by_all(kind: str) -> None:
    elements = Elements(rendered("page", kind))
    found, tags = elements.found, [tag for tag, _ in elements.found]
    assert json.loads(elements.texts["diagnosis"])["schema"] == 1
    for tag, attributes in found:
        for name in ASSETS & attributes.keys():  # only links for the reader to follow lead out
            outward = tag == "a" and attributes[name].startswith("https://")
            assert outward or attributes[name].startswith("#"), (tag, attributes)
    ids = [attributes["id"] for _, attributes in found if "id" in attributes]
    assert len(ids) == len(set(ids))
    inner = {a["href"][1:] for tag, a in found if tag == "a" and a["href"].startswith("#")}
    named = {a[key] for _, a in found for key in ("aria-labelledby", "data-figure") if key in a}
    assert inner | named <= set(ids)
    levels = [int(tag[1]) for tag in tags if re.fullmatch(r"h[1-6]", tag)]
    assert (levels[0], levels.count(1)) == (1, 1)
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert tags.count("table") == tags.count("caption")
    assert all("scope" in attributes for tag, attributes in found if tag == "th")
    policy = next(a["content"] for tag, a in found if tag == "meta" and "http-equiv" in a)
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "http" not in policy.lower().replace("http-equiv", "")


def test_a_page_is_small_the_same_each_time_and_without_pictures_carries_no_plotly() -> None:
    assert html.render(diagnoses.full()) == html.render(diagnoses.full())
    assert len(html.render(diagnoses.full()).encode()) < 1_000_000
    assert len(html.render(diagnoses.no_steps()).encode()) < 40_000


def test_a_page_of_many_operations_stays_an_attachment() -> None:
    page = html.render(diagnoses.huge())
    assert len(page.encode()) < 2_500_000
    content = json.loads(Elements(page).texts["diagnosis"])
    shown = (len(content["operations"]), content["operations_omitted"])
    assert shown == (MOST_OPERATIONS, 3000 - MOST_OPERATIONS)
    assert len(contract(diagnoses.huge())["operations"]) == 3000
    assert contract(read(content))["operations_omitted"] == 3000 - MOST_OPERATIONS


def test_hostile_text_adds_no_element_and_no_handler() -> None:
    found = Elements(rendered("page", "hostile")).found
    assert "img" not in {tag for tag, _ in found}
    assert not [name for _, attributes in found for name in attributes if name.startswith("on")]
    assert [attributes.get("type", "") for tag, attributes in found if tag == "script"].count("") == 1


def test_plotly_survives_its_packing() -> None:
    policy, packed = template.plotly()
    assert not set(packed) - set(template.ALPHABET)
    assert "<" not in packed
    script = gzip.decompress(base64.b85decode(str(packed).replace(",", "<"))).decode()
    assert policy == template.script_hash(script)
    assert script.startswith(f"/*! plotly.js {get_plotlyjs_version().split('.')[0]}.")


def test_plotly_gets_no_markup_from_names_and_no_numbers_that_are_none() -> None:
    drawn = " ".join(
        chart.figure for made in ("hostile", "unknown-numbers") for chart in charts(diagnoses.ALL[made]())
    )
    assert [one for one in ("<img", "<b>", "NaN", "Infinity") if one in drawn] == []


def test_smaller_operations_are_drawn_together_and_all_listed() -> None:
    chart = charts(diagnoses.huge())[2]
    assert "2,900 smaller operations" in chart.figure
    assert len(chart.table.rows) == 3000


def test_a_sentence_shows_code_between_backticks_and_no_markup() -> None:
    assert coded("run `a <b>` & c") == "run <code>a &lt;b&gt;</code> &amp; c"
    assert coded("one ` <i>") == "one ` &lt;i&gt;"


def test_prose_is_text_code_and_links_to_https() -> None:
    shown = to_html("a `b` [c](https://d.test) [e](javascript:x) <img src=x> ![f](https://g.test/h.png)")
    marks = ("<code>b</code>", '<a href="https://d.test">c</a>', "<img", 'href="javascript')
    assert [one in shown for one in marks] == [True, True, False, False]


def test_a_timeline_without_marked_work_links_no_finding() -> None:
    """As in an edited report: the rules that it names are those of its bars."""
    known, links = sure(full().timeline), 'aria-label="Findings about work of this step"'
    assert links in html.render_without_plotly(full())
    unmarked = tuple(  # as in reports of before bars had rules
        replace(lane, bars=tuple(bar._replace(rules=-1) for bar in lane.bars)) for lane in known.lanes
    )
    for lanes in ((), unmarked):
        timeline = replace(known, rules=((), ("input-bound",)), lanes=lanes)
        assert links not in html.render_without_plotly(replace(full(), timeline=timeline))


# One comment on a pull request, in which nothing from a trace is markup


def tokens(source: str) -> list[Token]:
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    return [child for token in parser.parse(source) for child in (token, *(token.children or ()))]


def shown(source: str) -> str:
    return "".join(t.content for t in tokens(source) if t.type in {"text", "code_inline"})


@each(*diagnoses.ALL)
def test_a_comment_fits_and_its_only_tags_are_ours(kind: str) -> None:
    source = rendered("md", kind)
    assert len(source.encode()) <= 64_000
    tags = "".join(t.content for t in tokens(source) if t.type.startswith("html"))
    assert set(re.findall(r"</?(\w+)", tags)) <= {"details", "summary", "br"}
    assert tags.count("<details>") == tags.count("</details>")


def test_what_is_left_out_is_counted() -> None:
    for said in ("… 490 more rows", "… 24 more changes"):
        assert f"{said} in the HTML and JSON reports." in rendered("md", "huge")


def test_hostile_text_makes_no_markup_and_stays_in_its_cells() -> None:
    source = rendered("md", "hostile")
    kinds = [t.type for t in tokens(source)]
    assert not {*kinds} & {"link_open", "image", "em_open", "s_open", "hr", "blockquote_open"}
    assert "tr_open" in kinds
    for table in source.split("\n\n"):
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines() if line.startswith("| ")}
        assert len(widths) <= 1


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
@example(">")
@example("> 3 ms")
def test_escaped_text_reads_as_it_was(raw: str) -> None:
    line = text.name(raw)
    seen = shown(f"x {md.escaped(line)} x").replace("\u200b", "")
    assert " ".join(seen.split()) == " ".join(f"x {line} x".split())


@each("# a", "1. a", "2) a", "- a", "+ a", "> a", "---", "===", "* a")
def test_no_text_starts_a_heading_or_a_list(line: str) -> None:
    plain = {"paragraph_open", "inline", "text", "text_special", "paragraph_close"}
    assert {t.type for t in tokens(md.escaped(line))} <= plain


@each("@user", "#12", "GH !5", ":smile:", "https://x.test", "www.x.test", "a@b.c")
def test_no_text_becomes_a_link_on_a_host(line: str) -> None:
    """Hosts make links of these in the text that Markdown leaves; a zero-width space parts them."""
    seen = shown(md.escaped(line))
    assert not re.search(r"[@#!:]\w|://|www\.\w", seen)


@given(st.text("`ab |", min_size=1, max_size=12).filter(lambda raw: raw.strip()))
def test_code_holds_any_backticks(raw: str) -> None:
    line = text.name(raw)
    spans = [t.content for t in tokens(f"x{md.code(line)}x") if t.type == "code_inline"]
    assert [span.strip() for span in spans] == [line.strip()]


def test_a_block_of_code_cannot_be_left() -> None:
    hostile = "```\n</details>\n````\n<img src=x>"
    blocks = [t.content for t in tokens(md.fenced(hostile)) if t.type == "fence"]
    assert blocks == [hostile + "\n"]


@each("a --> b", "<!-- x", "\n-->", "é --")
def test_no_title_ends_the_marker(title: str) -> None:
    assert re.fullmatch(r"<!-- tfdoctor-report [\w.]*(-[\w.]+)*-? -->", md.marker(title), re.ASCII)


def test_the_whole_report_is_linked() -> None:
    linked = replace(diagnoses.full(), link="https://ci.test/1/report.html")
    assert "[Whole report](https://ci.test/1/report.html)." in md.render(linked)
    assert "[Whole report]" not in md.render(diagnoses.full())


# The contract for other programs


DOCUMENT = Path(__file__).parents[2] / "docs" / "reference" / "json.md"
SCHEMA = schema()
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def report(name: str) -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    loaded: dict[str, Any] = json.loads(json_format.render(finished(diagnoses.ALL[name]())), parse_constant=refuse)
    return loaded


@each(*diagnoses.ALL)
def test_a_report_is_valid_by_the_published_schema(name: str) -> None:
    shown = report(name)
    assert [error.message for error in VALIDATOR.iter_errors(shown)] == []
    assert set(shown["breakdown_ms"]) == set(PARTS)


def test_unknown_numbers_are_null_and_names_hide_nothing() -> None:
    """A program that prints a name prints no control character."""
    shown = report("hostile")
    measure, title = shown["results"][0]["evidence"][0], shown["subject"]["title"]
    assert (measure["value"], measure["limit"], title) == (None, None, legible(HOSTILE + INVISIBLE))
    assert r"\x1b[31mf" in title


def test_it_is_sorted_ascii_and_the_same_every_time() -> None:
    text = json_format.render(diagnoses.hostile())
    assert text.isascii()
    assert (
        text
        == json_format.render(diagnoses.hostile())
        == json.dumps(json.loads(text), indent=2, sort_keys=True) + "\n"
    )


def test_a_remark_is_valid_and_its_remedies_have_no_edits() -> None:
    remark = Remark(summary="few steps", remedies=(Remedy(action="train longer"),))
    result = replace(full().results[0], outcome=remark, severity=None)
    written = json.loads(json_format.render(replace(full(), results=(result,))))
    assert written["results"][0]["remedies"][0]["edit"] is None
    VALIDATOR.validate(written)


def test_the_published_schema_is_that_of_the_types() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert json.loads(DOCUMENT.with_name("report.schema.json").read_text()) == SCHEMA


def properties_of(value: Any) -> set[str]:
    """Return the names of all fields that a schema has."""
    match value:
        case {"properties": dict(names)}:
            return set(names).union(*map(properties_of, value.values()))
        case dict():
            return set().union(*map(properties_of, value.values()))
        case list():
            return set().union(*map(properties_of, value))
        case _:
            return set()


def test_every_field_is_documented_and_exists() -> None:
    page = DOCUMENT.read_text()
    named = {part for name in re.findall(r"`([^`]+)`", page) for part in re.split(r"\[\]\.|\.", name)}
    rows = re.findall(r"^\| (`.+?) \|", page, flags=re.MULTILINE)
    fields = {re.split(r"\[\]\.|\.", name)[-1] for row in rows for name in re.findall(r"`([^`]+)`", row)}
    assert properties_of(SCHEMA) - named == fields - properties_of(SCHEMA) == set()
