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

MIRRORED = 'import tensorflow as tf\nstrategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])\n'

CACHED = """import tensorflow as tf

def f(x):
    return tf.abs(x)

d = d.map(read).cache().map(f, num_parallel_calls=2)
d = d.batch(8)
"""

WIDTH = "import keras\nx = keras.layers.Dense(130)(x)\n"

BATCH_NORM = "import keras\nx = keras.layers.BatchNormalization()(x)"
NAME = "FusedBatchNormalization"

TOLD = Edits()
policy = partial(TOLD.make, "precision-policy", "fit")
policy(
    POLICY.format,
    *('"mixed_float16"', "'mixed_float16'", "policy", '"mixed_float16" if fast else "float32"'),
    'keras.mixed_precision.Policy("mixed_float16")',
)
policy(
    (FLOAT16 + "{}").format,
    *("x = tf.cast(x, tf.float16)\n", 'x = x.astype("float16")\n', 'layer = Dense(3, dtype="mixed_float16")\n'),
)
policy((NAMED + "{}").format, "", "print(POLICY)\n")
policy(
    "{}\nmodel.fit(x, y)\n".format, 'layer = Dense(3, dtype="mixed_float16")', 'kind = {"policy": "mixed_float16"}'
)
TOLD.make(
    *("decode-ratio", "decode_", replacing(LOAD)),
    *(("channels=3)", new) for new in ("channels=3)", "channels=3, ratio=1)", "3)", "channels=3, ratio=2)")),
    *(("channels=3)", new) for new in ("channels=3)[20:-20]", "channels=3), tf.io.decode_jpeg(other)")),
    ("tf.image.resize(image, (64, 64))", "tf.image.resize(image[:100], (64, 64))"),
    ("resize(image,", "resize(tf.image.central_crop(image, 0.5),"),
    ("(64, 64)", "tf.shape(image)[:2] // 8"),
    *(("tf.io.decode_jpeg", new) for new in ("decode_jpeg", "tf.io.decode_png")),
)
TOLD.make(
    "decode-ratio", "decode_", "import tensorflow as tf\nx = {}(y)\n".format, "tf.io.decode_jpeg"
)  # in no function
TOLD.make(
    *("one-replica", "import", replacing(MIRRORED)),
    *(("tf.distribute", "tf.distribute"), ("tf.distribute", "mine.distribute")),
    *(("Mirrored", "MultiWorkerMirrored"), ("\nstrategy", "\nother = tf.distribute.MirroredStrategy()\nstrategy")),
    (
        'strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])',
        "with tf.distribute.MirroredStrategy().scope(): pass",
    ),
)
TOLD.make(
    *("earlier-shuffle", "d", str),
    *("d = d.batch(32).shuffle(100)\n", "d = d.batch(32).shuffle(buffer_size=N, seed=1)\n", "d = d.shuffle(100)\n"),
    *("d = d.batch(32).prefetch(2).shuffle(100)\n", "d = d.batch(32).shuffle(*given)\n"),
    *("d = d.batch(32).shuffle(seed=3)\n", "d = d.batch(32).shuffle(n, seed=n)\n"),
    *("d = (d.batch(32)  # rows\n    .shuffle(100))\n", "a, b = d.batch(3).shuffle(9), d.batch(3).shuffle(9)\n"),
)
without_size = "dataset.shuffle(100).repeat()"  # the example of an order of repetitions
TOLD.make("earlier-shuffle", "d", str, "d = d.repeat().shuffle(100).map(f)\n", example=without_size)
TOLD.make("layer-width", "Dense", WIDTH.replace("130", "{}").format, "130", "131")
TOLD.make(*("cache", ".cache", replacing(CACHED)), ("tf.abs(x)", "tf.abs(x)"))
norm = partial(TOLD.make, "fused-batch-norm", "BatchNormalization(")
norm(
    (BATCH_NORM + "{}").format,
    *("\nNORM = keras.layers.BatchNormalization", "\nclass N(keras.layers.BatchNormalization): ..."),
    *(f"\nclass {NAME}: ...", "\ntf = 3", "\nmodel.save('m.keras')"),
)
norm(
    "{}BatchNormalization()(x)".format,
    "import tf_keras\nx = tf_keras.layers.",
    "from mine import BatchNormalization\nx = ",
)
norm(
    "{0}\n\nx = {1}(momentum=0.9)(x)\ny = {1}()(x)\n".format,
    ("import keras\nimport tensorflow as tf", "keras.layers.BatchNormalization"),
    ("import tensorflow as tf", "tf.keras.layers.BatchNormalization"),
    ("import tensorflow as tf\nfrom keras import layers as L", "L.BatchNormalization"),
    ("import tensorflow as tf\nfrom keras.layers import BatchNormalization", "BatchNormalization"),
    *(
        (imports, "keras.layers.BatchNormalization")
        for imports in ("import keras", "import keras\nimport tensorflow")
    ),
)
TOLD.make("precision-policy", "fit", str, FLOAT16, example="")
TOLD.make("layer-width", "Dense", str, WIDTH, example="")
test_edits_of_rules = TOLD.test("of_rules")


def test_lines_that_are_added_end_as_those_of_the_file() -> None:
    after = edited("fused-batch-norm", BATCH_NORM, "BatchNormalization(")
    assert edited("fused-batch-norm", BATCH_NORM.replace("\n", "\r\n"), "BatchN") == after.replace("\n", "\r\n")
