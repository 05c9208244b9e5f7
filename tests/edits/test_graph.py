"""tf-function: a step becomes a graph only where its Python has no effect and needs no value of a tensor."""

from tests.edits.kit import *

SCRIPT = """import keras
import numpy as np
import tensorflow as tf
from helpers import other

RATE, NAMES = 0.5, ["a"]
model = keras.Sequential([keras.layers.Dense(4)])
opt = keras.optimizers.Adam(1e-3)
loss_fn = keras.losses.MeanSquaredError()
seen, array, counter = [], np.zeros(3), 0
table = tf.random.normal((3, 3))
table = table / 2.0


def scaled(x):
    return x * RATE


def train_step(x, y):
    {body}
    with tf.GradientTape() as tape:
        loss = loss_fn(y, model(scaled(x), training=True))
    grads = tape.gradient(loss, model.trainable_variables)
    opt.apply_gradients(zip(grads, model.trainable_variables))
    return {result}


ds = tf.data.Dataset.from_tensor_slices((a, b)).shuffle(9).batch(4)
for epoch in range(2):
    for x, y in ds.take(7):
        loss = train_step(x, y)
        {after}
"""


def script(body: str = "pass", result: str = "loss", after: str = "print(float(loss))") -> str:
    return SCRIPT.format(body=body, result=result, after=after)


MASKED = script("x = x * masks").replace(
    "\n\ndef scaled", "masks = np.ones(3)\nmasks[0] = 2.0\nmasks = tf.constant(masks)\n\n\ndef scaled"
)

BODIES = [
    *("pass", '"""Take a step."""', "n = x.shape[0]", "x = tf.cast(x, tf.float32) / 255.0", "x = x @ table"),
    "x = x[..., :2] + tf.random.normal(tf.shape(x))",
    "parts = [tf.reduce_sum(v) for v in model.trainable_variables]",
    *("extra = sum(model.losses)", "z = tf.where(x > 0.5, x, -x)", "if y is None: y = x"),
    "for v in model.trainable_variables:\n        v.assign(v * RATE)",
    "if y is None:\n        y = x\n    else:\n        y = y * RATE",
    # Python that has an effect, or needs the value of a tensor
    *("print(x)", "seen.append(x)", "x = x.numpy()", "x = float(x[0])", "n = len(x)", "x = np.sqrt(x)"),
    *("global counter\n    counter += 1", "array[0] = 1.0", "model.rate = 1.0", "tf.summary.scalar('x', 1.0)"),
    *("if tf.reduce_mean(x) > 0:\n        x = -x", "while x[0] > 0:\n        x = x - 1"),
    *("x = -x if x[0] > 0 else x", "for row in x:\n        y = y + row", "rows = [r for r in x]"),
    *("for i in range(int(x[0])):\n        y = y + 1", "x = keras.layers.Dense(3)(x)", "v = tf.Variable(1.0)"),
    *("x = other(x)", "x = f'{x}'", "x = x + array", "x = x * unknown", "g = lambda v: v\n    x = g(x)"),
    *("try:\n        pass\n    except ValueError:\n        pass", "assert x.shape[0] == 4", "x = x and y"),
    *("x = tf.map_fn(other, x)", "if tf.executing_eagerly():\n        pass", "with open('f') as f:\n        pass"),
]

RESULTS = ("loss", "loss, x", "{'loss': loss}", "None")

TOLD = Edits()
graph = partial(TOLD.make, "tf-function")
graph("for x, y", script, *BODIES)
for mark in ("for x, y", "def train_step"):
    graph(mark, lambda result, _: script(result=result), *((one, mark) for one in RESULTS))
graph(
    "for x, y",
    lambda result: script(result=result),
    *("float(loss)", "loss.numpy()", "1.0", "loss, 3", "RATE", "loss, NAMES"),
)
graph(
    "for x, y",
    lambda after: script(after=after),
    "opt.learning_rate = 0.1",  # which may change
    *("RATE *= 0.9", "RATE = 0.1", "model = keras.Sequential([])", "model.trainable = False"),
    *("train_step(x.numpy(), y)", "train_step(array, y)", "train_step(epoch, y)", "map(train_step, x)"),
    *("tf.config.run_functions_eagerly(True)", "x = ds.padded_batch(4)"),
)
graph(
    "for ",
    replacing(script()),
    ("from_tensor_slices((a, b)).shuffle(9).batch(4)", "as_numpy(q)"),
    ("for x, y in ds.take(7)", "for x, y in zip(a, b)"),
    ("for x, y in ds.take(7)", "for y, x in enumerate(ds)"),
    ("for x, y in ds.take(7)", "for x, y in ds.as_numpy_iterator()"),
    ("def train_step", "@decorated\ndef train_step"),
    ("import tensorflow as tf", "import tensorflow.compat.v2 as tf"),
    ("with tf.Grad", "with tf.compat.v2.Grad"),
    ("keras.layers.Dense(4)]", "keras.layers.Lambda(scaled)]"),
    ("keras.layers.Dense(4)]", "keras.layers.Dense(4, activation=other)]"),
    ("model = keras.Sequential([keras.layers.Dense(4)])", "model = other()"),
    ("return x * RATE", "return x * array"),
    ("def scaled(x):\n    return x * RATE", "def scaled(x, f=other):\n    return f(x)"),
    ("return x * RATE", "print(x)\n    return x"),
)

OWN = "\n\nclass Block(keras.layers.Layer):\n    def call(self, x):\n        return x\n\nRATE,"
graph("for x, y", replacing(script()), ("\nRATE,", OWN))
graph("for x, y", str, "import tensorflow as tf\nfor x, y in ds:\n    pass\n")
graph("for x", str, "import tensorflow as tf\nfor x in ds:\n    with tf.GradientTape() as t:\n        pass\n")
graph("x = 1", str, "import tensorflow as tf\nx = 1\n")
AGAIN = "\nmodel = other(model)\n"
graph("for x, y", (MASKED + "{}").format, *("", "masks = tf.zeros(3)\n", "masks[0] = 3\n"))
graph("for x, y", (MASKED + "{}").format, *(f"masks = tf.zeros(3)\n{AGAIN}", f"masks[0] = 3\n{AGAIN}"))
test_a_step_becomes_a_graph_where_its_python_allows_it = TOLD.test("graph")


FUNCTIONS = """import keras
import tensorflow as tf


def net():
    return keras.Sequential([keras.layers.Dense(2)])


def data():
    train = tf.data.Dataset.range(8).map(lambda i: tf.fill([2], tf.cast(i, tf.float32))).batch(4)
    return train, train.take(1)


def step(model, optimizer, x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(x))
    variables = model.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    return loss


def train(epochs):
    dataset, _ = data()
    model, optimizer = net(), keras.optimizers.SGD(0.1)
    for epoch in range(epochs):
        for x in dataset:
            loss = step(model, optimizer, x)
        print(epoch, float(loss))


train(2)
"""

FOLLOWED = Edits()
FOLLOWED.make(
    *("tf-function", "for x in", replacing(FUNCTIONS)),
    ("train(2)", "train(2)"),
    ("        for x in dataset", "        model = net()\n        for x in dataset"),
    ("range(8).map(", "range(8).as_numpy_iterator("),
    ("import tensorflow as tf", "import jax as tf"),
    ("\ntrain(2)", "\nfor _ in range(3):\n    train(2)"),
    ("\ntrain(2)", "\ntrain(2)\ntrain(3)"),
    ("x)\n        print", "x)\n            step(net(), optimizer, x)\n        print"),
)
test_models_and_data_are_followed_through_functions = FOLLOWED.test("graph.functions")
