"""Run what the page has in place of Python, with TensorFlow, and compare it with what it replaces."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from tfdoctor.rules.input.python_input import CODE

random = np.random.default_rng(9)
ROWS = random.standard_normal((4, 32)).astype("float32")
TEXTS = ["a<br />b<br>", "12 of 3", ""]
NAMES: dict[str, Any] = {
    "tf": tf,
    "numpy": np,
    "re": re,
    "kernel": random.random(7, dtype=np.float32),
    "low": -0.5,
    "high": 0.4,
    "shift": 3,
    "before": 2,
    "after": 1,
    "pattern": r"<br ?/?>|[0-9]+",
    "new": " ",
}
# "# in place of numpy.std(row):", where there may be a condition behind the call, and "result = ..." below it.
SAME = re.compile(r"# in place of (.*?\))(?: (?:for|but) .*)?:\nresult = (.*)")
SIDES = {key: same.groups() for key, code in CODE.items() if (same := SAME.fullmatch(code))}


def compare(key: str) -> None:
    """Give both sides the same rows, or texts."""
    python, tensorflow = SIDES[key]
    one, many, examples = ("text", "texts", TEXTS) if "(texts" in tensorflow else ("row", "rows", ROWS)
    expected = np.stack([eval(python, {**NAMES, one: example}) for example in examples])
    found = eval(tensorflow, {**NAMES, many: examples}).numpy()
    if found.dtype == object:
        assert [text.decode() for text in found] == list(expected)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def compare_images() -> None:
    """Read and halve a known image: Pillow is not always there."""
    ramp = np.broadcast_to(np.arange(0, 240, 4, dtype=np.uint8)[:, None, None], (60, 40, 3))
    path = str(Path("ramp.png").absolute())
    tf.io.write_file(path, tf.io.encode_png(ramp))
    image = eval(SIDES["PIL.open"][1], {"tf": tf, "path": path})
    np.testing.assert_array_equal(image, ramp)
    names = {"tf": tf, "image": image, "height": 30, "width": 20}
    half = eval(SIDES["PIL.resize"][1], names).numpy()
    pairs = ramp[:, :20].astype(float).reshape(30, 2, 20, 3).mean(axis=1)
    np.testing.assert_allclose(half[2:-2], pairs[2:-2], atol=0.5)


seen = [key for key in SIDES if not key.startswith("PIL.")]
for key in seen:
    compare(key)
compare_images()
