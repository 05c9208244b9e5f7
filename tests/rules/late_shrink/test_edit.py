"""earlier-resize: a resize moves over what gives an image of the same size again, and over nothing else."""

import pytest

from tests.edits.editing_at import edited_at
from tfdoctor.edits.splice import Declined

WITHIN = """import tensorflow as tf

def load(path, label):
    image = tf.io.decode_jpeg(tf.io.read_file(path))
    image = tf.cast(image, tf.float32)
    image = tf.image.random_brightness(image, 0.2)
    image = image / 255.0
    image = tf.image.resize(image, (64, 64))
    return image, label
"""

RETURNED = WITHIN.replace("image = tf.image.resize(image, (64, 64))\n    return image, label",
                          "return tf.image.resize(image, (64, 64)), label")  # fmt: skip

MAPS = """import tensorflow as tf

def augment(image, label):
    image = tf.image.random_flip_left_right(image)
    image = tf.image.random_contrast(image, 0.8, 1.2)
    return image, label

def shrink(image, label):
    return tf.image.resize(image, (64, 64)), label

data = data.map(augment, num_parallel_calls=4).map(shrink).batch(8)
"""


@pytest.mark.parametrize("text", [WITHIN, RETURNED])
def test_a_resize_moves_before_the_first_line_of_the_work(text: str) -> None:
    new = edited_at("earlier-resize", text, "tf.image.resize", "# before line 6")
    lines = [line.strip() for line in new.splitlines()]
    at = lines.index("image = tf.image.resize(image, (64, 64))")
    assert lines[at - 1] == "image = tf.cast(image, tf.float32)"
    assert lines[at + 1] == "image = tf.image.random_brightness(image, 0.2)"
    assert lines[-1] == "return image, label"
    assert new.count("resize") == 1


def test_two_maps_are_exchanged() -> None:
    new = edited_at("earlier-resize", MAPS, "tf.image.resize", "# before line 4")
    assert new == MAPS.replace(
        ".map(augment, num_parallel_calls=4).map(shrink)", ".map(shrink).map(augment, num_parallel_calls=4)"
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("image = image / 255.0", "image = image - tf.reduce_mean(image)"),  # of all pixels
        ("image = image / 255.0", "image = tf.image.random_crop(image, (200, 200, 3))"),
        ("image = image / 255.0", "image = image + noise(tf.shape(image))"),
        ("image = image / 255.0", "mask = image > 0.5"),  # is seen at full size
        ("image = image / 255.0", "scaled = image / 255.0"),
        ("image = image / 255.0", "image[0].assign(image[1])"),
        ("image, (64, 64)", "image, tf.shape(image)[:2] // 2"),
        ("return image, label", "return image, label, 1"),
    ],
)
def test_what_may_need_the_full_image_declines(old: str, new: str) -> None:
    text = WITHIN.replace(old, new)
    if old in ("image, (64, 64)", "return image, label"):
        text = text.replace("image = image / 255.0", "size = tf.shape(image)")
    with pytest.raises(Declined):
        edited_at("earlier-resize", text, "tf.image.resize", "# before line 6")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (".map(shrink)", ".cache().map(shrink)"),
        (".map(shrink)", ".map(shrink).map(shrink)"),
        ("return tf.image.resize(image, (64, 64)), label", "return tf.image.resize(image, (64, 64)), label * 2"),
        ("return image, label\n\ndef", "return label, image\n\ndef"),
        ("def augment(image, label):", "def augment(image, label, extra=None):"),
        ("0.8, 1.2)", "0.8, 1.2) * tf.reduce_max(image)"),
    ],
)  # fmt: skip
def test_maps_that_do_more_are_not_exchanged(old: str, new: str) -> None:
    with pytest.raises(Declined):
        edited_at("earlier-resize", MAPS.replace(old, new), "tf.image.resize", "# before line 4")


def test_without_the_line_of_the_work_there_is_no_edit() -> None:
    with pytest.raises(Declined, match="no known line"):
        edited_at("earlier-resize", WITHIN, "tf.image.resize", "# before these operations")
