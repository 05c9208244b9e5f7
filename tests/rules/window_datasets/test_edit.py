"""sliding-windows: one array of all windows takes the place of a dataset for each of them."""

from typing import Any

import numpy as np
import pytest

from tests.edits.editing_at import edited_at
from tfdoctor.edits.splice import Declined

LINES = """import numpy as np
import tensorflow as tf

data = tf.data.Dataset.from_tensor_slices(series)
data = data.window(5, shift=1, drop_remainder=True)
data = data.flat_map(lambda w: w.batch(5))
data = data.batch(2)
"""

CHAIN = """import numpy as np
import tensorflow as tf

data = tf.data.Dataset.from_tensor_slices(series).window(size, shift=3, drop_remainder=True).flat_map(
    lambda w: w.batch(size, drop_remainder=True)).batch(2)
"""


def test_the_windows_are_sliced() -> None:
    new = edited_at("sliding-windows", LINES, "flat_map")
    assert new == (
        "import numpy as np\nimport tensorflow as tf\n\n"
        "data = tf.data.Dataset.from_tensor_slices(np.lib.stride_tricks.sliding_window_view(series, 5))\n"
        "data = data.batch(2)\n"
    )


@pytest.mark.tensorflow
@pytest.mark.parametrize("text", [LINES, CHAIN, CHAIN.replace("shift=3, ", "")])
def test_the_windows_are_the_same(text: str) -> None:
    found = []
    for one in (text, edited_at("sliding-windows", text, "flat_map")):
        names: dict[str, Any] = {"series": np.arange(40.0), "size": 4}
        exec(one, names)
        found.append([batch.numpy().tolist() for batch in names["data"]])
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("import numpy as np\n", ""),
        ("drop_remainder=True", "drop_remainder=False"),
        (", drop_remainder=True", ""),
        ("shift=1", "shift=1, stride=2"),
        ("window(5, shift=1", "window(5, 1"),
        ("w.batch(5)", "w.batch(4)"),
        ("w.batch(5)", "w.map(f).batch(5)"),
        ("lambda w: w.batch(5)", "join"),
        ("data = data.window", "data = data.map(f)\ndata = data.window"),
        ("from_tensor_slices(series)", "range(100)"),
        ("data = data.flat_map", "others = data.flat_map"),
        ("w.batch(5))\n", "w.batch(5))  # rows\n"),
    ],
)
def test_other_windows_decline(old: str, new: str) -> None:
    with pytest.raises(Declined):
        edited_at("sliding-windows", LINES.replace(old, new), "flat_map")
