"""Each kind of edit, for many ways to write what it changes: what it writes, or why it is not made."""

from tests.edits.kit import *
from tfdoctor.edits.by_id import CHECKS
from tfdoctor.recording.program import RecordedDataset, RecordedFunction

MARKS = {"prefetch": ".batch", "parallel-batch": ".batch", "cache": ".map", "cache-before-repeat": ".cache"}

LINES = {
    "prefetch": [
        *("d = d.map(f).batch(2)", "model.fit(d.batch(2))", "for x in d.batch(2):\n    pass"),
        *("d = (\n    d.map(f)\n    .batch(2)  # small\n)", "d = d.map(f) \\\n    .batch(2)"),
    ],
    "parallel-map": [
        *("d = d.map(f)", "d = d.map(f, None)", "d = d.map(f, 8)", "d = d.map(f, num_parallel_calls=None)"),
        "d = d.map(f, num_parallel_calls=1)",  # a number that somebody chose
        *("d = d.map(lambda x: (x, 1))", "d = d.map((lambda x: x))", "d = d.map(f,)", "d = d.map(\n    f,\n)"),
        *("d = d.map(\n    f,  # slow\n)", "d = d.map(\n    f  # slow, or (so)\n)"),
        "d = d.map(f, deterministic=False)",  # the order would change
        *("d = d.map(f)\no.deterministic = False", "d = d.map(f, deterministic=True)"),
    ],
    "parallel-batch": ["d = d.batch(8)", "d = (\n\td.batch(\n\t\t8,\n\t))"],
    "parallel-interleave": ["d = files.interleave(read, cycle_length=4)"],
    "cache": [
        *("d = files.map(f).batch(2)", "d = files.map(f).map(g)", "d = files.map(f)"),
        "d = files.map(f).map(f)",  # which of them?
        "d = (\n    files\n    .map(f)\n    .batch(2)\n)",
        *("d = files.shuffle(9).map(f)", "d = files.repeat().shuffle(9).map(f)"),
        "d = files.map(f).cache().map(f, 2)",
        "d = (\n    files\n    .shuffle(9)\n    .map(f)\n    .batch(2)\n)",
        "d = (\n    files\n    .shuffle(9)  # a few\n    .map(f)\n)",
        *("d = names()\nd = d.shuffle(9)\nd = d.map(f)", "d = names().shuffle(9)\nd = d.map(f)"),
        "d = (\n    names()\n    .shuffle(9)\n    .repeat()\n)\nd = d.map(f).batch(2)",
        "d = names()\nd = d.repeat()\nd = d.shuffle(9)\nd = d.map(f)",
    ],
    "cache-before-repeat": [
        *("d = d.repeat().cache()", "d = d.repeat().cache('x').batch(2)", "d = d.repeat().map(f).cache()"),
        *("d = (\n    d\n    .repeat()\n    .cache()\n)", "d = d.repeat()\nd = d.cache()"),
    ],
    "jit-compile": [
        *("model.compile('adam', 'mse')", "model.compile(run_eagerly=True)", "model.compile(**settings)"),
        *(f"model.compile(loss='mse', jit_compile={value})" for value in (False, None)),
    ],
    "steps-per-execution": [
        "model.compile('adam', 'mse')\nmodel.fit(x)",
        "model.compile('adam', 'mse')",  # fit() is in another file
        "model.compile(steps_per_execution=4)\nmodel.fit(x)",
        *("rx.compile('adam')\nmodel.fit(x)", "rx.compile('adam', flags)\nmodel.fit(x)"),  # a regular expression
    ],
    "run-eagerly-off": [
        *("model.compile('adam', run_eagerly=True)", "model.run_eagerly = True"),
        *("model.compile(run_eagerly=debug)", "tf.config.run_functions_eagerly(True)"),  # some may need it
    ],
}

TOLD = Edits()
TOLD.add("all edits", lambda: tuple(sorted(KINDS)))
for edit_id, texts in LINES.items():
    for text in texts:
        mark = MARKS.get(edit_id, text.split("\n", maxsplit=1)[0])
        TOLD.make(edit_id, mark, "import tensorflow as tf\n{}\n".format, text)
TOLD.make(
    "parallel-map",
    "d.map",
    "{}\nd = d.map(f)\n".format,
    *("import tensorflow as tf", "import tensorflow", "import tensorflow.data", "from tensorflow import data"),
    *("from tensorflow.data import AUTOTUNE", "from tensorflow.data import AUTOTUNE as FREE"),
    *("from tensorflow import *", "import keras", "import tensorflow as tf\ntf = 3"),
)
for edit_id in ("prefetch", "cache", "parallel-batch"):
    TOLD.make(
        edit_id, "", "import tensorflow as tf\nd = d.batch(8)\nmodel.fit(d)  # {}\n".format, "of an unknown line"
    )
test_edits_of_lines = TOLD.test("by_id")

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

LIBRARY = """import keras
d = keras.utils.image_dataset_from_directory(folder, shuffle=False)
d = d.prefetch(2)
"""

LAST = "model.add(tf.keras.layers.Dense(2))"
ON = "model.add(keras.layers.Dense(3))"
LOOPED = "for n in sizes:\n    model.add(keras.layers.Dense(n))\n"
NAMELESS = """import tensorflow as tf
from keras import layers, models

loss = tf.keras.losses.Huber()
model = models.Sequential([layers.Dense(8), layers.Dense(2)])
"""

MODELS = Edits()
of_models = partial(MODELS.make, "mixed-precision", "Dense(8")
of_models(str, SEQUENTIAL, FUNCTIONAL, ADDED, NAMELESS)
of_models(
    (SEQUENTIAL + "{}").format,
    *(LOOPED, f"{LOOPED}{ON}\n", f"other.{ON[6:]}\n", f"def f():\n    {ON}\n"),
    "other = keras.Sequential([keras.layers.Flatten()])\n",
)
of_models(
    replacing(SEQUENTIAL),
    *(("Dense(8)", 'Dense(8, dtype="float32")'), ("keras.layers.Dense(2)", "*head")),
    ("keras.layers.Dense(2)", "keras.layers.Dropout(0.5)"),
    ("import keras", "import keras\nkeras.config.set_dtype_policy('x')"),
    ("import keras", "class Mine(keras.Model):\n    pass\nimport keras"),
    ("import keras", "import os\n\ntry:\n    import keras\nexcept ImportError:\n    raise"),
    (SEQUENTIAL[14:], "model = keras.applications.ResNet50()\nkeras.layers.Dense(8)\n"),
)
of_models(replacing(FUNCTIONAL), ("y)\nmodel", "y)\ny = y * 2\nmodel"), ("Model(x, y)", "Model(x, [y, x])"))
of_models(replacing(ADDED), (LAST, f"for _ in s: {LAST}"), (LAST, f"[{LAST} for _ in s]"))
cached = partial(MODELS.make, "cache", "image_dataset", example="dataset = dataset.cache()")
cached((LIBRARY + "{}").format, "", "print(d.class_names)\n")
cached(replacing(LIBRARY), ("d = keras", "d, e = keras"))
test_edits_of_models_functions_and_datasets = MODELS.test("by_id.models")


@each("parallel-map", "parallel-batch", "parallel-interleave")
def test_examples_keep_their_order_by_the_recorded_options(edit_id: str) -> None:
    CHECKS[edit_id](_with_options(None, {"deterministic": True}), SyntaxTree(""), 1, "")
    with pytest.raises(Declined, match="order of its examples would change"):
        CHECKS[edit_id](_with_options({"deterministic": False}), SyntaxTree(""), 1, "")


def _with_options(*options: dict[str, bool | int | float | str] | None) -> ProgramRecord:
    stages = [RecordedDataset(number, "_MapDataset", options=chosen) for number, chosen in enumerate(options)]
    return ProgramRecord(datasets=tuple(stages))


# Lines, and the recorded stages of their pipelines: kinds, or functions with the types of their operations.
RECORDED = [
    ("d = d.map(f)", "f:Cast"),
    ("d = d.map(f).map(flip)", "f:Cast flip:RandomUniform"),
    ("d = d.map(flip).map(f)", "flip:RandomUniform f:Cast"),
    ("d = d.map(lambda x: f(x)).map(flip)", "f:Cast flip:RandomUniform"),  # which of them?
    ("d = d.map(f)", "f:EagerPyFunc"),
    ("d = d.map(f)", "f:"),  # its graph was not recorded
    ("d = d.map(f)", ""),
    ("d = d.map(f)", "DirectedInterleave f:Cast"),
    ("d = d.map(f)", "Random f:Cast"),
    ("def make(f):\n    return d.map(f)", "f:Cast"),
    *(("def make(g):\n    return d.map(g)\nmake(f)", stages) for stages in ("f:Cast", "f:Cast flip:RandomUniform")),
    ("def make(g):\n    return d.map(g)\nmake(f)\nmake(flip)", "f:Cast"),
    ("def make(g):\n    return d.map(lambda x: g(x))", "f:Cast"),
    ("def make(n):\n    return d.map(lambda x: f(x, n), n)", "f:Cast"),
    ("d = names().shuffle(9).repeat().map(f)", "Shuffle Repeat f:Cast"),
    ("d = names().map(f)", "Shuffle f:Cast"),  # shuffled out of sight, as by list_files()
    ("e = files.shuffle(9)\nc = e\nd = c.map(f)", "Shuffle f:Cast"),  # under another name
    ("d = d.shuffle(9).interleave(f).map(f)", "Shuffle f:Cast f:Cast"),  # nine files are not nine examples
    ("d = d.shuffle(9).batch(2).map(f)", "Shuffle Batch f:Cast"),  # other batches in each pass
    ("d = d.shuffle(9)\nprint(d)\nd = d.map(f)", "Shuffle f:Cast"),  # used in between
    ("n = 1; d = d.shuffle(9)\nd = d.map(f)", "Shuffle f:Cast"),  # the line has more than the stage that moves
    ("d = d.shuffle(9)\nv = d.take(2)\nd = d.map(f)", "Shuffle f:Cast"),
    ("d = d.shuffle(9).cache().map(f)", "Shuffle Cache f:Cast"),
    ("d = d.cache().shuffle(9).map(f)", "Cache Shuffle f:Cast"),
    ("d = d.cache('file').map(f)", "Cache f:Cast"),  # the file holds other elements by now
    *(
        ("d = image_dataset_from_directory(p)", f"load:DecodePng {more}")
        for more in ("Batch", "Shuffle", "Shuffle Batch")
    ),
]


def cached_as_recorded(text: str, stages: str) -> str:
    """Cache the pipeline of the line that maps, or that makes it, after the check of what was recorded."""
    mark = next(mark for mark in (".map", "directory") if mark in text)
    line, datasets = 1 + text[: text.index(mark)].count("\n"), list[RecordedDataset]()
    for number, (name, colon, kind) in enumerate(stage.partition(":") for stage in stages.split()):
        kinds = frozenset([kind]) if kind else None
        function = RecordedFunction(name, python=kind == "EagerPyFunc", types=kinds, stateful=kinds and frozenset())
        before, at = (number - 1,), ("t.py", line)
        made = RecordedDataset(number, f"_{'Map' if colon else name}Dataset", inputs=before, at=at)
        datasets.append(replace(made, function=function if colon else None))
    program = ProgramRecord(datasets=tuple(datasets))
    CHECKS["cache"](program, SyntaxTree(text, "t.py"), line, EXAMPLES["cache"])
    return edited("cache", text, mark)


OF_RECORDS = Edits()
for text, stages in RECORDED:
    shown = text.replace("\n", "\\n")
    OF_RECORDS.add(f"{shown} ({stages})", partial(change, partial(cached_as_recorded, stages=stages), text))
test_a_cache_follows_what_is_recorded_to_be_the_same = OF_RECORDS.test("by_id.recorded")
