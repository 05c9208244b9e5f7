"""floatx: one word changes where all values follow it, and nothing else is 64-bit."""

import pytest

from tests.edits.editing import edited
from tfdoctor.edits.splice import Declined

TEXT = 'import keras\nkeras.backend.set_floatx("float64")\nmodel.fit(x, y)\n'


def test_keras_computes_in_float32() -> None:
    assert edited("floatx", TEXT) == TEXT.replace("float64", "float32")


@pytest.mark.parametrize(
    "cast", ["x.astype(int)", "x.astype('int32')", "x.astype(np.int64)", "np.zeros(3, dtype=np.uint8)"]
)
def test_a_cast_to_whole_numbers_does_not_matter(cast: str) -> None:
    text = f"{TEXT}y = {cast}\n"
    assert edited("floatx", text) == text.replace("float64", "float32")


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace("model.fit(x, y)", "step(x)"),
        TEXT + "keras.backend.set_floatx('float32')\n",
        TEXT + "x = x.astype(kind)\n",
        TEXT + "x = x.astype(internal)\n",
        TEXT + "x = np.zeros(3, dtype=kind)\n",
        TEXT + "w = tf.Variable(x)\n",
        TEXT + "with tf.GradientTape() as tape:\n    pass\n",
        TEXT.replace("float64", "float16"),
        "model.fit(x, y)\n",
    ],
)
def test_other_values_of_64_bits_decline(text: str) -> None:
    with pytest.raises(Declined):
        edited("floatx", text)
