"""Replacements by line and column say the same as the splices that they are made of."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tfdoctor.edits.patch import replaced
from tfdoctor.source_code.splice import Splice, spliced

texts = st.lists(st.sampled_from(["a = 1", "é", "", "    x(\N{GRINNING FACE})"]), max_size=6).flatmap(
    lambda lines: st.sampled_from(["\n", "\r\n"]).map(lambda end: end.join(lines))
)


@st.composite
def edits(draw: st.DrawFn) -> tuple[str, list[Splice]]:
    """A text and splices of it that do not overlap; several may add at one place."""
    text = draw(texts)
    places = [n for n in range(len(text) + 1) if text[n - 1 : n + 1] != "\r\n"]
    edges = sorted(draw(st.lists(st.sampled_from(places), max_size=6)))
    new = st.sampled_from(["", "y", "\nz"])
    found = [Splice(start, end, rank, draw(new)) for rank, (start, end) in enumerate(list(pairwise(edges))[::2])]
    return text, found


def applied(text: str, splices: list[Splice]) -> str:
    """Replace by lines and columns, the last place first."""
    starts = [0]
    for number, character in enumerate(text):
        if character == "\n":
            starts.append(number + 1)
    for one in reversed(replaced(text, splices)):
        start, end = (starts[line - 1] + column - 1 for line, column in (one.start, one.end))
        text = text[:start] + one.text + text[end:]
    return text


@given(edits())
def test_replacements_do_what_splices_do(edit: tuple[str, list[Splice]]) -> None:
    text, splices = edit
    assert applied(text, splices) == spliced(text, splices)
