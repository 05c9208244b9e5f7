"""earlier-shuffle: shuffle() changes places with the batch() or the repeat() directly before it."""

import pytest

from tests.edits.editing_at import edited_at
from tfdoctor.edits.splice import Declined

EXAMPLE = "dataset = dataset.shuffle(3200).batch(32)"


@pytest.mark.parametrize(
    ("before", "after", "example"),
    [
        ("d.batch(32).shuffle(100)", "d.shuffle(3200).batch(32)", EXAMPLE),
        ("d.batch(32).shuffle(buffer_size=N, seed=1)", "d.shuffle(buffer_size=3200, seed=1).batch(32)", EXAMPLE),
        ("d.repeat().shuffle(100).map(f)", "d.shuffle(100).repeat().map(f)", "dataset.shuffle(100).repeat()"),
    ],
)  # fmt: skip
def test_the_stages_are_exchanged(before: str, after: str, example: str) -> None:
    text = "d = {}\n"
    assert edited_at("earlier-shuffle", text.format(before), "d", example) == text.format(after)


@pytest.mark.parametrize(
    "text",
    [
        "d = d.batch(32).prefetch(2).shuffle(100)\n",
        "d = d.shuffle(100)\n",
        "d = d.batch(32).shuffle(*given)\n",
        "d = d.batch(32).shuffle(seed=3)\n",
        "d = d.batch(32).shuffle(n, seed=n)\n",
        "d = (d.batch(32)  # rows\n    .shuffle(100))\n",
        "a, b = d.batch(3).shuffle(9), d.batch(3).shuffle(9)\n",
    ],
)
def test_what_is_not_adjacent_or_not_clear_declines(text: str) -> None:
    with pytest.raises(Declined):
        edited_at("earlier-shuffle", text, "d", EXAMPLE)
