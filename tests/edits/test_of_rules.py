"""The edits of one rule each: what they write, and what they leave alone."""

from tests.edits.kit import *

POLICY = "import keras\nkeras.mixed_precision.set_global_policy({})\nmodel.fit(x, y)\n"
FLOAT16 = POLICY.format('"mixed_float16"')
NAMED = f'POLICY = "mixed_float16"\n{POLICY.format("POLICY")}'

LOAD = """import tensorflow as tf

def load(path, label):
    image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
    return tf.image.resize(image, (64, 64)) / 255.0, label
"""
SMALLER = LOAD.replace("channels=3)", "channels=3, ratio=4)")

MIRRORED = 'import tensorflow as tf\nstrategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])\n'

CACHED = """import tensorflow as tf

def f(x):
    return tf.abs(x)

d = d.map(read).cache().map(f, num_parallel_calls=2)
d = d.batch(8)
"""

WIDTH = "import keras\nx = keras.layers.Dense(130)(x)\n"

MADE = [
    ("precision-policy", FLOAT16, FLOAT16.replace("mixed_float16", "float32")),
    ("precision-policy", POLICY.format("'mixed_float16'"), POLICY.format("'float32'")),
    ("precision-policy", POLICY.format('keras.mixed_precision.Policy("mixed_float16")'),
     POLICY.format('keras.mixed_precision.Policy("float32")')),
    ("precision-policy", POLICY.format('"mixed_float16" if fast else "float32"'),
     POLICY.format('"float32" if fast else "float32"')),
    ("precision-policy", NAMED, NAMED.replace("mixed_float16", "float32")),
    ("decode-ratio", LOAD, SMALLER),
    ("decode-ratio", LOAD.replace("channels=3)", "channels=3, ratio=1)"), SMALLER),
    ("decode-ratio", LOAD.replace("channels=3)", "3)"), SMALLER.replace("channels=3,", "3,")),
    ("one-replica", MIRRORED, "import tensorflow as tf\nstrategy = tf.distribute.get_strategy()\n"),
    ("earlier-shuffle", "d = d.batch(32).shuffle(100)\n", "d = d.shuffle(3200).batch(32)\n"),
    ("earlier-shuffle", "d = d.batch(32).shuffle(buffer_size=N, seed=1)\n",
     "d = d.shuffle(buffer_size=3200, seed=1).batch(32)\n"),
    ("layer-width", WIDTH, WIDTH.replace("130", "128")),
    ("cache", CACHED,
     CACHED.replace(".cache().map(f, num_parallel_calls=2)", ".map(f, num_parallel_calls=2).cache()")),
]  # fmt: skip

MARKS = {
    "precision-policy": "fit", "decode-ratio": "decode_", "one-replica": "import", "earlier-shuffle": "d",
    "layer-width": "Dense", "cache": ".cache", "fused-batch-norm": "BatchNormalization(",
}  # fmt: skip


@pytest.mark.parametrize(("edit_id", "before", "after"), MADE)
def test_it_is_written(edit_id: str, before: str, after: str) -> None:
    assert edited(edit_id, before, MARKS[edit_id]) == after


def test_the_order_of_repetitions_has_an_example_without_a_size() -> None:
    text = "d = d.repeat().shuffle(100).map(f)\n"
    made = edited("earlier-shuffle", text, "d", "dataset.shuffle(100).repeat()")
    assert made == "d = d.shuffle(100).repeat().map(f)\n"


BATCH_NORM = "import keras\nx = keras.layers.BatchNormalization()(x)"
NAME = "FusedBatchNormalization"

LEFT = [
    ("precision-policy", POLICY.format("policy")),
    ("precision-policy", f"{FLOAT16}x = tf.cast(x, tf.float16)\n"),
    ("precision-policy", f'{FLOAT16}x = x.astype("float16")\n'),
    ("precision-policy", f'{FLOAT16}layer = Dense(3, dtype="mixed_float16")\n'),
    ("precision-policy", f"{NAMED}print(POLICY)\n"),
    ("precision-policy", 'layer = Dense(3, dtype="mixed_float16")\nmodel.fit(x, y)\n'),
    ("precision-policy", 'kind = {"policy": "mixed_float16"}\nmodel.fit(x, y)\n'),
    ("decode-ratio", LOAD.replace("channels=3)", "channels=3, ratio=2)")),
    ("decode-ratio", LOAD.replace("channels=3)", "channels=3)[20:-20]")),
    ("decode-ratio", LOAD.replace("tf.image.resize(image, (64, 64))", "tf.image.resize(image[:100], (64, 64))")),
    ("decode-ratio", LOAD.replace("resize(image,", "resize(tf.image.central_crop(image, 0.5),")),
    ("decode-ratio", LOAD.replace("(64, 64)", "tf.shape(image)[:2] // 8")),
    ("decode-ratio", LOAD.replace("tf.io.decode_jpeg", "decode_jpeg")),
    ("decode-ratio", LOAD.replace("tf.io.decode_jpeg", "tf.io.decode_png")),
    ("decode-ratio", LOAD.replace("channels=3)", "channels=3), tf.io.decode_jpeg(other)")),
    ("decode-ratio", "import tensorflow as tf\nx = tf.io.decode_jpeg(y)\n"),  # in no function
    ("one-replica", f"{MIRRORED}other = tf.distribute.MirroredStrategy()\n"),
    ("one-replica", "import tensorflow as tf\nwith tf.distribute.MirroredStrategy().scope(): pass\n"),
    ("one-replica", MIRRORED.replace("tf.distribute", "mine.distribute")),
    ("one-replica", MIRRORED.replace("MirroredStrategy", "MultiWorkerMirroredStrategy")),
    ("earlier-shuffle", "d = d.batch(32).prefetch(2).shuffle(100)\n"),
    ("earlier-shuffle", "d = d.shuffle(100)\n"),
    ("earlier-shuffle", "d = d.batch(32).shuffle(*given)\n"),
    ("earlier-shuffle", "d = d.batch(32).shuffle(seed=3)\n"),
    ("earlier-shuffle", "d = d.batch(32).shuffle(n, seed=n)\n"),
    ("earlier-shuffle", "d = (d.batch(32)  # rows\n    .shuffle(100))\n"),
    ("earlier-shuffle", "a, b = d.batch(3).shuffle(9), d.batch(3).shuffle(9)\n"),
    ("layer-width", WIDTH.replace("130", "131")),
    ("cache", CACHED.replace("tf.abs(x)", "tf.random.normal([])")),
    ("cache", CACHED.replace(".cache()", ".cache('/tmp/file')")),  # holds other elements by now
    ("cache", CACHED.replace(".cache()", ".cache().shuffle(8)")),
    ("fused-batch-norm", "import tf_keras\nx = tf_keras.layers.BatchNormalization()(x)"),
    ("fused-batch-norm", "from mine import BatchNormalization\nx = BatchNormalization()(x)"),
    ("fused-batch-norm", f"{BATCH_NORM}\nNORM = keras.layers.BatchNormalization"),
    ("fused-batch-norm", f"{BATCH_NORM}\nclass N(keras.layers.BatchNormalization): ..."),
    ("fused-batch-norm", f"{BATCH_NORM}\nclass {NAME}: ..."),
    ("fused-batch-norm", f"{BATCH_NORM}\ntf = 3"),
    ("fused-batch-norm", f"{BATCH_NORM}\nmodel.save('m.keras')"),
]  # fmt: skip


@pytest.mark.parametrize(("edit_id", "text"), LEFT)
def test_what_it_may_break_is_left(edit_id: str, text: str) -> None:
    assert declined(edit_id, text, MARKS[edit_id]) is None


@pytest.mark.parametrize(("edit_id", "text"), [("precision-policy", FLOAT16), ("layer-width", WIDTH)])
def test_the_example_names_the_value(edit_id: str, text: str) -> None:
    assert declined(edit_id, text, MARKS[edit_id], "") is None


@pytest.mark.parametrize(
    ("imports", "written"),
    [
        ("import keras\nimport tensorflow as tf", "keras.layers.BatchNormalization"),
        ("import tensorflow as tf", "tf.keras.layers.BatchNormalization"),
        ("import tensorflow as tf\nfrom keras import layers as L", "L.BatchNormalization"),
        ("import tensorflow as tf\nfrom keras.layers import BatchNormalization", "BatchNormalization"),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_class_stands_below_the_imports_and_makes_the_layers(imports: str, written: str, end: str) -> None:
    text = f"{imports}\n\nx = {written}(momentum=0.9)(x)\ny = {written}()(x)\n".replace("\n", end)
    result = edited("fused-batch-norm", text, "BatchNormalization(")
    assert result.startswith(f"{imports}\n\n\nclass {NAME}({written}):\n".replace("\n", end))
    assert result.endswith(f"\n\nx = {NAME}(momentum=0.9)(x)\ny = {NAME}()(x)\n".replace("\n", end))
    assert result.count(NAME) == 3
    assert result.count(end) == result.count("\n")


@pytest.mark.parametrize(
    ("imports", "added", "name"),
    [("import keras", "\nimport tensorflow as tf", "tf"), ("import keras\nimport tensorflow", "", "tensorflow")],
)
def test_tensorflow_has_the_name_of_the_file_or_is_imported(imports: str, added: str, name: str) -> None:
    result = edited("fused-batch-norm", f"{imports}\n\nx = keras.layers.BatchNormalization()(x)\n", "BatchN")
    assert result.startswith(f"{imports}{added}\n\n\nclass {NAME}(keras.layers.BatchNormalization):\n")
    assert re.findall(r"(?<![\w.])(tf|tensorflow)\.", result) == [name] * CODE["drop-in"].count("tf.")
