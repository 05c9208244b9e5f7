"""Each kind of edit: the line it writes, for many ways to write the line before."""

from tests.edits.kit import *
from tfdoctor.edits.by_id import CHECKS
from tfdoctor.recording.program import RecordedDataset

AUTO = "tf.data.AUTOTUNE"
HEAD = "import tensorflow as tf\n"

MADE = [
    ("prefetch", "d = d.map(f).batch(2)", "d = d.map(f).batch(2).prefetch(AUTO)"),
    ("prefetch", "model.fit(d.batch(2))", "model.fit(d.batch(2).prefetch(AUTO))"),
    ("prefetch", "for x in d.batch(2):\n    pass", "for x in d.batch(2).prefetch(AUTO):\n    pass"),
    ("prefetch", "d = (\n    d.map(f)\n    .batch(2)  # small\n)",
     "d = (\n    d.map(f)\n    .batch(2)  # small\n    .prefetch(AUTO)\n)"),
    ("prefetch", "d = d.map(f) \\\n    .batch(2)", "d = d.map(f) \\\n    .batch(2).prefetch(AUTO)"),
    ("parallel-map", "d = d.map(f)", "d = d.map(f, num_parallel_calls=AUTO)"),
    ("parallel-map", "d = d.map(f, None)", "d = d.map(f, AUTO)"),
    ("parallel-map", "d = d.map(f, 8)", None),
    ("parallel-map", "d = d.map(f, num_parallel_calls=1)", None),  # a number that somebody chose
    ("parallel-map", "d = d.map(f, num_parallel_calls=None)", "d = d.map(f, num_parallel_calls=AUTO)"),
    ("parallel-map", "d = d.map(lambda x: (x, 1))", "d = d.map(lambda x: (x, 1), num_parallel_calls=AUTO)"),
    ("parallel-map", "d = d.map((lambda x: x))", "d = d.map((lambda x: x), num_parallel_calls=AUTO)"),
    ("parallel-map", "d = d.map(f,)", "d = d.map(f, num_parallel_calls=AUTO,)"),
    ("parallel-map", "d = d.map(\n    f,\n)", "d = d.map(\n    f,\n    num_parallel_calls=AUTO,\n)"),
    ("parallel-map", "d = d.map(\n    f,  # slow\n)",
     "d = d.map(\n    f,  # slow\n    num_parallel_calls=AUTO,\n)"),
    ("parallel-map", "d = d.map(\n    f  # slow, or (so)\n)",
     "d = d.map(\n    f, num_parallel_calls=AUTO  # slow, or (so)\n)"),
    ("parallel-map", "d = d.map(f, deterministic=False)", None),  # the order would change
    ("parallel-map", "d = d.map(f)\no.deterministic = False", None),
    ("parallel-map", "d = d.map(f, deterministic=True)",
     "d = d.map(f, deterministic=True, num_parallel_calls=AUTO)"),
    ("parallel-batch", "d = d.batch(8)", "d = d.batch(8, num_parallel_calls=AUTO)"),
    ("parallel-interleave", "d = files.interleave(read, cycle_length=4)",
     "d = files.interleave(read, cycle_length=4, num_parallel_calls=AUTO)"),
    ("cache", "d = files.map(f).batch(2)", "d = files.map(f).cache().batch(2)"),
    ("cache", "d = files.map(f).map(g)", "d = files.map(f).cache().map(g)"),
    ("cache", "d = files.map(f).map(f)", None),  # which of them?
    ("cache", "d = files.map(f)", "d = files.map(f).cache()"),
    ("cache", "d = (\n    files\n    .map(f)\n    .batch(2)\n)",
     "d = (\n    files\n    .map(f)\n    .cache()\n    .batch(2)\n)"),
    ("cache", "d = files.shuffle(9).map(f)", "d = files.map(f).cache().shuffle(9)"),
    ("cache", "d = files.repeat().shuffle(9).map(f)", "d = files.map(f).cache().repeat().shuffle(9)"),
    ("cache", "d = files.shuffle(9).interleave(g).map(f)", None),  # nine files are not nine examples
    ("cache", "d = files.shuffle(9).batch(2).map(f)", None),  # other batches in each pass
    ("cache", "d = files.map(f).cache().map(f, 2)", None),
    ("cache", "d = (\n    files\n    .shuffle(9)\n    .map(f)\n    .batch(2)\n)",
     "d = (\n    files\n    .map(f)\n    .cache()\n    .shuffle(9)\n    .batch(2)\n)"),
    ("cache", "d = (\n    files\n    .shuffle(9)  # a few\n    .map(f)\n)", None),
    ("cache", "d = names()\nd = d.shuffle(9)\nd = d.map(f)", "d = names()\nd = d.map(f).cache().shuffle(9)"),
    ("cache", "d = names().shuffle(9)\nd = d.map(f)", "d = names()\nd = d.map(f).cache().shuffle(9)"),
    ("cache", "d = (\n    names()\n    .shuffle(9)\n    .repeat()\n)\nd = d.map(f).batch(2)",
     "d = (\n    names()\n)\nd = d.map(f).cache().shuffle(9).repeat().batch(2)"),
    ("cache", "d = names()\nd = d.repeat()\nd = d.shuffle(9)\nd = d.map(f)",
     "d = names()\nd = d.map(f).cache().repeat().shuffle(9)"),
    ("cache", "d = d.shuffle(9)\nprint(d)\nd = d.map(f)", None),  # used in between
    ("cache", "n = 1; d = d.shuffle(9)\nd = d.map(f)", None),  # the line has more than the stage that moves
    ("cache", "d = d.shuffle(9)\nv = d.take(2)\nd = d.map(f)", None),
    ("cache", "n = tf.data.Dataset.list_files(p)\nd = n.map(f)", None),  # in another order in each epoch
    ("cache", "n = tf.data.Dataset.list_files(p, shuffle=False)\nd = n.map(f)",
     "n = tf.data.Dataset.list_files(p, shuffle=False)\nd = n.map(f).cache()"),
    ("cache-before-repeat", "d = d.repeat().cache()", "d = d.cache().repeat()"),
    ("cache-before-repeat", "d = d.repeat().cache('x').batch(2)", "d = d.cache('x').repeat().batch(2)"),
    ("cache-before-repeat", "d = (\n    d\n    .repeat()\n    .cache()\n)",
     "d = (\n    d\n    .cache()\n    .repeat()\n)"),
    ("cache-before-repeat", "d = d.repeat().map(f).cache()", None),
    ("cache-before-repeat", "d = d.repeat()\nd = d.cache()", None),
    ("cache", "e = files.shuffle(9)\nc = e\nd = c.map(f)", None),  # shuffled under another name
    ("cache", "e = files.take(9)\nc = e\nd = c.map(f)", "e = files.take(9)\nc = e\nd = c.map(f).cache()"),
    ("jit-compile", "model.compile('adam', 'mse')", "model.compile('adam', 'mse', jit_compile=True)"),
    ("jit-compile", "model.compile(loss='mse', jit_compile=False)", None),
    ("jit-compile", "model.compile(loss='mse', jit_compile=None)", "model.compile(loss='mse', jit_compile=True)"),
    ("jit-compile", "model.compile(run_eagerly=True)", None),
    ("jit-compile", "model.compile(**settings)", None),
    ("steps-per-execution", "model.compile('adam', 'mse')\nmodel.fit(x)",
     "model.compile('adam', 'mse', steps_per_execution=16)\nmodel.fit(x)"),
    ("steps-per-execution", "model.compile('adam', 'mse')", None),  # fit() is in another file
    ("steps-per-execution", "model.compile(steps_per_execution=4)\nmodel.fit(x)", None),
    ("steps-per-execution", "rx.compile('adam')\nmodel.fit(x)", None),  # a regular expression
    ("steps-per-execution", "rx.compile('adam', flags)\nmodel.fit(x)", None),
    ("run-eagerly-off", "model.compile('adam', run_eagerly=True)", "model.compile('adam', run_eagerly=False)"),
    ("run-eagerly-off", "tf.config.run_functions_eagerly(True)", None),  # of all functions: some may need it
    ("run-eagerly-off", "model.run_eagerly = True", "model.run_eagerly = False"),
    ("run-eagerly-off", "model.compile(run_eagerly=debug)", None),
]  # fmt: skip


@pytest.mark.parametrize(("edit_id", "line", "expected"), MADE)
def test_an_edit_changes_its_line_only(edit_id: str, line: str, expected: str | None) -> None:
    names = {"prefetch": ".batch", "cache": ".map", "cache-before-repeat": ".cache"}
    mark = names.get(edit_id, line.split("\n", maxsplit=1)[0])
    made = declined(edit_id, f"{HEAD}{line}\n", mark)
    assert made == (None if expected is None else f"{HEAD}{expected.replace('AUTO', AUTO)}\n")


@pytest.mark.parametrize(
    ("imports", "name"),
    [
        ("import tensorflow as tf", "tf.data.AUTOTUNE"),
        ("import tensorflow", "tensorflow.data.AUTOTUNE"),
        ("import tensorflow.data", "tensorflow.data.AUTOTUNE"),
        ("from tensorflow import data", "data.AUTOTUNE"),
        ("from tensorflow.data import AUTOTUNE", "AUTOTUNE"),
        ("from tensorflow.data import AUTOTUNE as FREE", "FREE"),
        ("from tensorflow import *", None),
        ("import keras", None),
        ("import tensorflow as tf\ntf = 3", None),
    ],
)
def test_an_edit_uses_the_names_of_the_file(imports: str, name: str | None) -> None:
    made = declined("parallel-map", f"{imports}\nd = d.map(f)\n", "d.map")
    expected = f"{imports}\nd = d.map(f, num_parallel_calls={name})\n"
    assert made == (expected if name else None)


def test_the_edits_are_known() -> None:
    known = "prefetch parallel-map parallel-batch parallel-interleave cache cache-before-repeat earlier-shuffle"
    known += " vectorized-map decode-ratio jit-compile steps-per-execution run-eagerly-off tf-function"
    known += " mixed-precision precision-policy fused-batch-norm layer-width one-replica"
    assert set(KINDS) == set(known.split())


@pytest.mark.parametrize("edit_id", ["prefetch", "cache", "parallel-batch"])
def test_the_line_of_a_pipeline_is_not_guessed(edit_id: str) -> None:
    with pytest.raises(Declined, match="line of the pipeline is unknown"):
        edited(edit_id, f"{HEAD}d = d.batch(8)\nmodel.fit(d)\n")


FUNCTIONS = """import tensorflow as tf

@tf.function{decorator}
def step(x):
    with tf.GradientTape() as tape:
        loss = model(x)
    return loss

@tf.function
def evaluate(x):
    return model(x)
"""


@pytest.mark.parametrize("decorator", ["", "()", "(jit_compile=None)"])
def test_a_custom_loop_is_compiled_at_its_function(decorator: str) -> None:
    made = edited("jit-compile", FUNCTIONS.format(decorator=decorator))
    assert made == FUNCTIONS.format(decorator="(jit_compile=True)")


@pytest.mark.parametrize("call", ["tf.print(x)", "tf.py_function(f, [x], tf.int64)"])
def test_a_function_that_xla_cannot_compile_is_not_changed(call: str) -> None:
    text = FUNCTIONS.format(decorator="").replace("    return loss", f"    {call}\n    return loss")
    with pytest.raises(Declined, match="XLA cannot compile"):
        edited("jit-compile", text)


SEQUENTIAL = """import keras

model = keras.Sequential([
    keras.layers.Dense(8),
    keras.layers.Dense(2),
])
"""

FUNCTIONAL = """import numpy as np
from tensorflow import keras

x = keras.Input([4])
y = keras.layers.Dense(8)(x)
y = keras.layers.Dense(2)(y)
model = keras.Model(x, y)
"""

ADDED = """import tensorflow as tf

model = tf.keras.Sequential()
model.add(tf.keras.layers.Dense(8))
model.add(tf.keras.layers.Dense(2))
"""


@pytest.mark.parametrize("text", [SEQUENTIAL, FUNCTIONAL, ADDED])
def test_a_policy_leaves_the_last_layer_in_float32(text: str) -> None:
    keras = "tf.keras" if "tf.keras" in text else "keras"
    made = edited("mixed-precision", text, "Dense(8)")
    policy = f'{keras}.mixed_precision.set_global_policy("mixed_bfloat16")'
    head, _, rest = text.partition("\n\n")
    expected = f"{head}\n\n{policy}\n\n{rest}".replace("Dense(2)", 'Dense(2, dtype="float32")')
    assert made == expected


@pytest.mark.parametrize(
    "text",
    [
        SEQUENTIAL.replace("keras.layers.Dense(2)", "keras.layers.Dropout(0.5)"),
        SEQUENTIAL.replace("Dense(8)", 'Dense(8, dtype="float32")'),
        SEQUENTIAL + "for n in sizes:\n    model.add(keras.layers.Dense(n))\n",
        SEQUENTIAL + "other.add(keras.layers.Dense(3))\n",
        SEQUENTIAL + "def f():\n    model.add(keras.layers.Dense(3))\n",
        SEQUENTIAL.replace("import keras", "import keras\nkeras.config.set_dtype_policy('x')"),
        SEQUENTIAL + "other = keras.Sequential([keras.layers.Flatten()])\n",
        SEQUENTIAL.replace("keras.layers.Dense(2)", "*head"),
        FUNCTIONAL.replace("y)\nmodel", "y)\ny = y * 2\nmodel"),
        FUNCTIONAL.replace("Model(x, y)", "Model(x, [y, x])"),
        ADDED.replace("model.add(tf.keras.layers.Dense(2))", "for _ in s: model.add(tf.keras.layers.Dense(2))"),
        ADDED.replace("model.add(tf.keras.layers.Dense(2))", "[model.add(tf.keras.layers.Dense(2)) for _ in s]"),
        "class Mine(keras.Model):\n    pass\n" + SEQUENTIAL,
        "import os\n\ntry:\n    import keras\nexcept ImportError:\n    raise\n" + SEQUENTIAL[13:],
        "import keras\n\nmodel = keras.applications.ResNet50()\nkeras.layers.Dense(8)\n",
    ],
)
def test_no_policy_is_set_where_the_last_layer_is_unclear(text: str) -> None:
    assert declined("mixed-precision", text, "Dense(8") is None


def test_the_layer_added_last_stays_in_float32() -> None:
    text = SEQUENTIAL + "for n in sizes:\n    model.add(keras.layers.Dense(n))\n"
    made = edited("mixed-precision", f"{text}model.add(keras.layers.Dense(3))\n", "Dense(8")
    assert 'model.add(keras.layers.Dense(3, dtype="float32"))' in made
    assert made.count("float32") == 1


def test_a_policy_is_imported_where_keras_has_no_name() -> None:
    text = "import tensorflow as tf\nfrom keras import layers, models\n\nloss = tf.keras.losses.Huber()\n"
    model = "model = models.Sequential([layers.Dense(8), layers.Dense(2)])\n"
    made = edited("mixed-precision", text + model, "Dense(8")
    assert "models\nfrom keras import mixed_precision\n\nmixed_precision.set_global_policy(" in made


@pytest.mark.parametrize("edit_id", ["parallel-map", "parallel-batch", "parallel-interleave"])
def test_examples_keep_their_order_by_the_recorded_options(edit_id: str) -> None:
    CHECKS[edit_id](_with_options(None, {"deterministic": True}), SyntaxTree(""), "")
    with pytest.raises(Declined, match="order of its examples would change"):
        CHECKS[edit_id](_with_options({"deterministic": False}), SyntaxTree(""), "")


def _with_options(*options: dict[str, bool | int | float | str] | None) -> ProgramRecord:
    stages = [RecordedDataset(number, "_MapDataset", options=chosen) for number, chosen in enumerate(options)]
    return ProgramRecord(datasets=tuple(stages))


LIBRARY = """import keras
d = keras.utils.image_dataset_from_directory(folder, shuffle=False)
d = d.prefetch(2)
"""


def test_the_dataset_of_a_library_is_cached_where_it_is_not_shuffled() -> None:
    assert "shuffle=False).cache()\n" in edited("cache", LIBRARY, "shuffle", "dataset = dataset.cache()")


@pytest.mark.parametrize(
    "text",
    [
        LIBRARY.replace("shuffle=False", "shuffle=True"),
        LIBRARY.replace(", shuffle=False", ""),
        LIBRARY.replace("d = keras", "d, e = keras"),
        LIBRARY + "print(d.class_names)\n",
    ],
)
def test_the_dataset_of_a_library_is_not_cached_where_that_changes_it(text: str) -> None:
    assert declined("cache", text, "image_dataset", "dataset = dataset.cache()") is None
