"""own-length: padded_batch() pads to the longest sequence of a batch where it is given no shapes."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.edits.editing_at import edited_at
from tests.edits.recorded import finding, recorded, remedy
from tfdoctor.edits import edited
from tfdoctor.edits.splice import Declined
from tfdoctor.recording.program import RecordedDataset

TEXT = "d = d.padded_batch(B, padded_shapes=((MAX,), ()), drop_remainder=True).prefetch(2)\n"


def test_the_shapes_are_left_out() -> None:
    new = edited_at("own-length", TEXT, "padded_batch")
    assert new == "d = d.padded_batch(B, drop_remainder=True).prefetch(2)\n"


def test_a_model_of_any_length_is_no_obstacle() -> None:
    model = "import keras\nx = keras.Input((None,))\nx = keras.layers.Embedding(9, 8)(x)\n"
    assert edited_at("own-length", model + TEXT, "padded_batch").count(", drop") == 1


@pytest.mark.parametrize(
    "text",
    [
        "d = d.padded_batch(B, ((MAX,), ()))\n",
        "d = d.padded_batch(B)\n",
        "d = d.padded_batch(**options, padded_shapes=((MAX,), ()))\n",
        "import keras\nx = keras.Input((MAX,))\n" + TEXT,
        "import keras\nx = keras.Input((192,))\n" + TEXT,
        "import keras\nx = keras.layers.Flatten()(x)\n" + TEXT,
        "import keras\nx = keras.layers.Embedding(MAX, 8)(x)\n" + TEXT,
        "class Positions:\n    def call(self, x):\n        return x + self.table[:MAX]\n" + TEXT,
        "d = d.padded_batch(B,  # rows\n    padded_shapes=(MAX,))\n",
    ],
)
def test_other_calls_decline(text: str) -> None:
    with pytest.raises(Declined):
        edited_at("own-length", text, "padded_batch")


SPEC = "(TensorSpec(shape={}, dtype=tf.int32, name=None), TensorSpec(shape=(), dtype=tf.int32, name=None))"


@pytest.mark.parametrize(("shape", "made"), [("(None,)", True), ("(192,)", False), ("<unknown>", False)])
def test_the_recording_has_to_show_open_lengths(tmp_path: Path, shape: str, *, made: bool) -> None:
    (tmp_path / "train.py").write_text(TEXT)
    run = recorded(tmp_path, ["train.py"])
    assert run.program is not None
    before = RecordedDataset(0, "_MapDataset", element_spec=SPEC.format(shape), made_by="map")
    batch = RecordedDataset(1, "_PaddedBatchDataset", inputs=(0,), made_by="padded_batch")
    run = replace(run, program=replace(run.program, datasets=(before, batch)))
    (result,), _ = edited(run, [finding("padding-waste", remedy("own-length"))], None)
    assert bool(result.edits[0].after) is made
