"""Edits of the batch size and of widths, which only a trial makes: where the file shows the number beyond doubt."""

from tests.edits.kit import *
from tfdoctor.edits.sizes import larger_batch, width


def line(text: str, pattern: str) -> int:
    return next(at for at, row in enumerate(text.splitlines(), 1) if re.search(pattern, row))


def larger(text: str, others: Sequence[str] = ()) -> str:
    return spliced(text, larger_batch(SyntaxTree(text), line(text, r"batch\(|\(x|utils"), (32, 64), others))


def wider(text: str) -> str:
    return spliced(text, width(SyntaxTree(text), line(text, r"(layers|mine)\.\w+\("), (130, 128)))


TOLD = Edits()
TOLD.of(
    *("larger", larger, str),
    *("data = data.map(f).batch(32)\n", "data = data.batch(batch_size=32, drop_remainder=True)\n"),
    *("model.fit(x, y, 32, epochs=32)\n", "model.fit(x, y, batch_size=32)\n"),
    'data = keras.utils.image_dataset_from_directory("images", batch_size=32)\n',
    "BATCH = 32  # examples\ndata = data.batch(BATCH)\nother = other.batch(BATCH)\n",
    "BATCH = 32\ndef main():\n    model.fit(x, batch_size=BATCH, epochs=2)\n",
    *("data = data.batch(args.batch)\n", "data = data.batch(16 * 2)\n", "data = data.batch(16)\n"),
    *(
        "model.fit(x, y)  # .batch(\n",
        "a, b = a.batch(32), b.batch(32)\n",
        "B = 32\nB = 32\ndata = data.batch(B)\n",
    ),
    *("B = 32\nsteps = 1000 // B\ndata = data.batch(B)\n", "def main(B=32):\n    data.batch(B)\n"),
    *(
        "if x:\n    B = 32\ndata.batch(B)\n",
        "from settings import B\ndata.batch(B)\n",
        "B = int(32)\ndata.batch(B)\n",
    ),
)
for other in ("MY_BATCH = 3\n", "from data import BATCH\n"):
    TOLD.of(f"larger beside {other}", partial(larger, others=(other,)), str, "BATCH = 32\nd.batch(BATCH)\n")
TOLD.of(
    *("wider", wider, "import keras\nfrom keras import layers\n{}\n".format),
    *("x = layers.Conv2D(130, 3)(x)", "x = layers.Dense(units=130)(x)"),
    "m = keras.Sequential([layers.Dense(130), layers.Dense(10)])",
    "W = 130\na = layers.Dense(W)\nb = layers.LSTM(W)",
    "x = layers.Dense(\n    130,\n    name='a',\n)(x)",
    *("x = layers.Dense(2 * 65)", "x = layers.Embedding(130, 8)", "x = mine.Dense(130)", "x = layers.Dense(120)"),
    *("def block(w):\n    return layers.Dense(w)", "W = 130\nx = layers.Dense(W)\ny = tf.zeros((W, 2))"),
)
test_sizes_change_where_the_file_shows_them = TOLD.test("model_changes")


def test_only_a_number_with_a_name_may_be_used_by_other_files() -> None:
    check, two = by_id.CHECKS["layer-width"], ProgramRecord(sources={"a.py": "1", "b.py": "2"})
    check(two, SyntaxTree("from keras import layers\nlayers.Dense(130)"), 2, "")
    with pytest.raises(Declined, match="other files"):
        check(two, SyntaxTree("from keras import layers\nWIDE = 130\nlayers.Dense(WIDE)"), 3, "")
