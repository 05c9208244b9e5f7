"""One comment on a pull request, in which nothing from a trace is markup."""

import re
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.report import diagnoses
from tfdoctor.report.formats import md
from tfdoctor.terms import text


def tokens(source: str) -> list[Token]:
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    return [child for token in parser.parse(source) for child in (token, *(token.children or ()))]


def shown(source: str) -> str:
    return "".join(t.content for t in tokens(source) if t.type in {"text", "code_inline"})


@pytest.mark.parametrize("kind", diagnoses.ALL)
def test_it_fits_one_comment(kind: str) -> None:
    assert len(md.render(diagnoses.ALL[kind]()).encode()) <= 64_000


def test_what_is_left_out_is_counted() -> None:
    source = md.render(diagnoses.huge())
    assert "… 490 more rows in the HTML and JSON reports." in source
    assert "… 24 more changes in the HTML and JSON reports." in source


@pytest.mark.parametrize("kind", diagnoses.ALL)
def test_the_only_tags_are_ours(kind: str) -> None:
    found = tokens(md.render(diagnoses.ALL[kind]()))
    tags = "".join(t.content for t in found if t.type.startswith("html"))
    assert set(re.findall(r"</?(\w+)", tags)) <= {"details", "summary", "br"}
    assert tags.count("<details>") == tags.count("</details>")


def test_hostile_text_makes_no_markup() -> None:
    kinds = {t.type for t in tokens(md.render(diagnoses.hostile()))}
    assert not kinds & {"link_open", "image", "em_open", "s_open", "hr", "blockquote_open"}


def test_hostile_rows_stay_in_their_cells() -> None:
    found = tokens(md.render(diagnoses.hostile()))
    fixes = [t.type for t in found if t.type in {"th_open", "td_open", "tr_open"}]
    assert fixes.count("tr_open") > 0
    for table in re.split(r"\n\n", md.render(diagnoses.hostile())):
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines() if line.startswith("| ")}
        assert len(widths) <= 1


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
@example(">")
@example("> 3 ms")
def test_escaped_text_reads_as_it_was(raw: str) -> None:
    line = text.name(raw)
    seen = shown(f"x {md.escaped(line)} x").replace("\u200b", "")
    assert " ".join(seen.split()) == " ".join(f"x {line} x".split())


@pytest.mark.parametrize("line", ["# a", "1. a", "2) a", "- a", "+ a", "> a", "---", "===", "* a"])
def test_no_text_starts_a_heading_or_a_list(line: str) -> None:
    assert {t.type for t in tokens(md.escaped(line))} <= {
        "paragraph_open", "inline", "text", "text_special", "paragraph_close",
    }  # fmt: skip


@pytest.mark.parametrize("line", ["@user", "#12", "GH !5", ":smile:", "https://x.test", "www.x.test", "a@b.c"])
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


def test_the_first_line_carries_the_verdict_and_a_marker_that_stays() -> None:
    """A bot finds its own comment by the marker, whatever the figures are."""
    first = md.render(diagnoses.full()).splitlines()[0]
    assert first == (
        "## tfdoctor: Each step takes 52.0 ms, including 43.1 ms waiting for input. "
        "<!-- tfdoctor-report train.py -->"
    )


@pytest.mark.parametrize("title", ["a --> b", "<!-- x", "\n-->", "é --"])
def test_no_title_ends_the_marker(title: str) -> None:
    assert re.fullmatch(r"<!-- tfdoctor-report [\w.]*(-[\w.]+)*-? -->", md.marker(title), re.ASCII)


def test_the_bar_is_a_picture_of_text() -> None:
    text = md.render(diagnoses.full())
    assert "input wait       43.1 ms  83 %  ████████████████████████▉\n" in text


def test_the_whole_report_is_linked() -> None:
    linked = replace(diagnoses.full(), link="https://ci.test/1/report.html")
    assert "[Whole report](https://ci.test/1/report.html)." in md.render(linked)
    assert "[Whole report]" not in md.render(diagnoses.full())
