"""cache: a cache moves behind the map that follows it, where the map gives the same in each epoch."""

import pytest

from tests.edits.editing_at import edited_at
from tfdoctor.edits.splice import Declined

TEXT = """import tensorflow as tf

def mel(x):
    return tf.abs(x)

d = d.map(read).cache().map(mel, num_parallel_calls=2)
d = d.batch(8)
"""
EXAMPLE = "dataset = dataset.map(mel)\ndataset = dataset.cache()"


def test_the_cache_moves_behind_the_map() -> None:
    new = edited_at("cache", TEXT, "cache", EXAMPLE)
    assert new == TEXT.replace(".cache().map(mel, num_parallel_calls=2)", ".map(mel, num_parallel_calls=2).cache()")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("tf.abs(x)", "tf.random.normal([])"),
        (".cache()", ".cache('/tmp/file')"),  # holds other elements by now
        (".cache()", ".cache().shuffle(8)"),
    ],
)
def test_other_caches_stay(old: str, new: str) -> None:
    text = TEXT.replace(old, new)
    with pytest.raises(Declined):
        edited_at("cache", text, "cache", EXAMPLE)
