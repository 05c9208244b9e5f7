"""Edits of the batch size and of widths, which only a trial makes: where the file shows the number beyond doubt."""

from tests.edits.kit import *
from tfdoctor.edits.sizes import larger_batch, width


def larger(text: str, marked: str, *others: str) -> str:
    module = SyntaxTree(text)
    return spliced(text, larger_batch(module, line(text, marked), (32, 64), others))


def wider(text: str, marked: str, *others: str) -> str:
    text = f"import keras\nfrom keras import layers\n{text}"
    module = SyntaxTree(text)
    changed = spliced(text, width(module, line(text, marked), (130, 128), others))
    return changed.partition("layers\n")[2]


def line(text: str, marked: str) -> int:
    return 1 + next(at for at, row in enumerate(text.splitlines()) if marked in row)


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("data = data.map(f).batch(32)\n", "data = data.map(f).batch(64)\n"),
        ("data = data.batch(batch_size=32, drop_remainder=True)\n",
         "data = data.batch(batch_size=64, drop_remainder=True)\n"),
        ("model.fit(x, y, 32, epochs=32)\n", "model.fit(x, y, 64, epochs=32)\n"),
        ("model.fit(x, y, batch_size=32)\n", "model.fit(x, y, batch_size=64)\n"),
        ('data = keras.utils.image_dataset_from_directory("images", batch_size=32)\n',
         'data = keras.utils.image_dataset_from_directory("images", batch_size=64)\n'),
        ("BATCH = 32  # examples\ndata = data.batch(BATCH)\nother = other.batch(BATCH)\n",
         "BATCH = 64  # examples\ndata = data.batch(BATCH)\nother = other.batch(BATCH)\n"),
        ("BATCH = 32\ndef main():\n    model.fit(x, batch_size=BATCH, epochs=2)\n",
         "BATCH = 64\ndef main():\n    model.fit(x, batch_size=BATCH, epochs=2)\n"),
    ],
)  # fmt: skip
def test_the_batch_is_larger_where_its_size_is_written(text: str, changed: str) -> None:
    marked = next(row for row in text.splitlines() if "batch(" in row or "(x" in row or "utils" in row)
    assert larger(text, marked) == changed


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("data = data.batch(args.batch)\n", "`args.batch` is not a number"),
        ("data = data.batch(16 * 2)\n", "`16 \\* 2` is not a number"),
        ("data = data.batch(16)\n", "the file has 16 where the run had 32"),
        ("model.fit(x, y)  # .batch(\n", "has no call with a batch size"),
        ("a, b = a.batch(32), b.batch(32)\n", "has several calls with a batch size"),
        ("B = 32\nsteps = 1000 // B\ndata = data.batch(B)\n", "`B` is used for something else"),
        ("B = 32\nB = 32\ndata = data.batch(B)\n", "`B` is not a number that the file assigns once"),
        ("def main(B=32):\n    data.batch(B)\n", "`B` is not a number that the file assigns once"),
        ("if x:\n    B = 32\ndata.batch(B)\n", "`B` is not a number that the file assigns once"),
        ("from settings import B\ndata.batch(B)\n", "`B` is not a number that the file assigns once"),
        ("B = int(32)\ndata.batch(B)\n", "is not a number that the file contains"),
    ],
)  # fmt: skip
def test_what_the_file_does_not_show_is_declined(text: str, why: str) -> None:
    with pytest.raises(Declined, match=why):
        larger(text, next(row for row in text.splitlines() if "batch(" in row))


def test_a_constant_that_another_file_names_is_declined() -> None:
    text = "BATCH = 32\ndata = data.batch(BATCH)\n"
    assert "64" in larger(text, "data.batch", "MY_BATCH = 3\n")
    with pytest.raises(Declined, match="something else"):
        larger(text, "data.batch", "from data import BATCH\n")


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("x = layers.Conv2D(130, 3)(x)\n", "x = layers.Conv2D(128, 3)(x)\n"),
        ("x = layers.Dense(units=130)(x)\n", "x = layers.Dense(units=128)(x)\n"),
        ("m = keras.Sequential([layers.Dense(130), layers.Dense(10)])\n",
         "m = keras.Sequential([layers.Dense(128), layers.Dense(10)])\n"),
        ("W = 130\na = layers.Dense(W)\nb = layers.LSTM(W)\n",
         "W = 128\na = layers.Dense(W)\nb = layers.LSTM(W)\n"),
        ("x = layers.Dense(\n    130,\n    name='a',\n)(x)\n",
         "x = layers.Dense(\n    128,\n    name='a',\n)(x)\n"),
    ],
)  # fmt: skip
def test_a_layer_has_the_advised_width(text: str, changed: str) -> None:
    assert wider(text, "layers.Dense(" if "Dense(" in text else "Conv2D") == changed


@pytest.mark.parametrize(
    "text",
    [
        "x = layers.Dense(2 * 65)\n",
        "x = layers.Embedding(130, 8)\n",
        "x = mine.Dense(130)\n",
        "x = layers.Dense(120)\n",
        "def block(w):\n    return layers.Dense(w)\n",
    ],
)
def test_a_width_that_the_line_does_not_show_is_declined(text: str) -> None:
    with pytest.raises(Declined, match="no layer whose width"):
        wider(text, next(row for row in text.splitlines() if "(" in row and "def" not in row))


def test_a_width_that_is_used_otherwise_is_declined() -> None:
    with pytest.raises(Declined, match="something else"):
        wider("W = 130\nx = layers.Dense(W)\ny = tf.zeros((W, 2))\n", "Dense")
