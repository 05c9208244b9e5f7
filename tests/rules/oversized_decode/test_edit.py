"""decode-ratio: JPEG images are decoded smaller where nothing in the function counts their pixels."""

import pytest

from tests.edits.editing_at import edited_at
from tfdoctor.edits.splice import Declined

TEXT = """import tensorflow as tf

def load(path, label):
    image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
    return tf.image.resize(image, (64, 64)) / 255.0, label
"""

ALONE = "import tensorflow as tf\nx = tf.io.decode_jpeg(y)\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("channels=3)", "channels=3, ratio=4)"),
        ("channels=3, ratio=1)", "channels=3, ratio=4)"),
        ("3)", "3, ratio=4)"),
    ],
)
def test_the_ratio_is_given(before: str, after: str) -> None:
    text = TEXT.replace("channels=3)", before)
    assert edited_at("decode-ratio", text, "decode_jpeg", "ratio=4") == TEXT.replace("channels=3)", after)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("channels=3)", "channels=3, ratio=2)"),
        ("channels=3)", "channels=3)[20:-20]"),
        ("tf.image.resize(image, (64, 64))", "tf.image.resize(image[:100], (64, 64))"),
        ("tf.image.resize(image,", "tf.image.resize(tf.image.central_crop(image, 0.5),"),
        ("(64, 64)", "tf.shape(image)[:2] // 8"),
        ("tf.io.decode_jpeg", "decode_jpeg"),
        ("tf.io.decode_jpeg", "tf.io.decode_png"),
        ("channels=3)", "channels=3), tf.io.decode_jpeg(other)"),
    ],
)
def test_what_counts_pixels_declines(old: str, new: str) -> None:
    with pytest.raises(Declined):
        edited_at("decode-ratio", TEXT.replace(old, new), "decode_", "ratio=4")


def test_a_decoder_in_no_function_declines() -> None:
    with pytest.raises(Declined, match="no function"):
        edited_at("decode-ratio", ALONE, "decode", "ratio=2")
