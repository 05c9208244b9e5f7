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


PURE = [
    "pass",
    '"""Take a step."""',
    "n = x.shape[0]",
    "x = tf.cast(x, tf.float32) / 255.0",
    "x = x[..., :2] + tf.random.normal(tf.shape(x))",
    "parts = [tf.reduce_sum(v) for v in model.trainable_variables]",
    "extra = sum(model.losses)",
    "z = tf.where(x > 0.5, x, -x)",
    "for v in model.trainable_variables:\n        v.assign(v * RATE)",
    "if y is None:\n        y = x\n    else:\n        y = y * RATE",
    "x = x @ table",
    "if y is None: y = x",
]


@pytest.mark.parametrize("body", PURE)
def test_a_pure_step_becomes_a_graph(body: str) -> None:
    before = script(body)
    assert edited("tf-function", before, "for x, y") == before.replace(
        "def train_step", "@tf.function\ndef train_step"
    )


@pytest.mark.parametrize("result", ["loss", "loss, x", "{'loss': loss}", "None"])
def test_results_that_are_tensors(result: str) -> None:
    assert "@tf.function" in edited("tf-function", script(result=result), "for x, y")
    assert "@tf.function" in edited("tf-function", script(result=result), "def train_step")


TRAPS = [
    ("print(x)", "print"),
    ("seen.append(x)", "append"),
    ("x = x.numpy()", "numpy"),
    ("x = float(x[0])", "float"),
    ("n = len(x)", "len"),
    ("x = np.sqrt(x)", "sqrt"),
    ("global counter\n    counter += 1", "Python that a graph may not keep"),
    ("array[0] = 1.0", "changes an object outside"),
    ("model.rate = 1.0", "changes an object outside"),
    ("if tf.reduce_mean(x) > 0:\n        x = -x", "decides by"),
    ("while x[0] > 0:\n        x = x - 1", "Python that"),
    ("x = -x if x[0] > 0 else x", "decides by"),
    ("for row in x:\n        y = y + row", "loops over what may be a tensor"),
    ("rows = [r for r in x]", "loops over what may be a tensor"),
    ("for i in range(int(x[0])):\n        y = y + 1", "loops as often"),
    ("x = keras.layers.Dense(3)(x)", "may create variables"),
    ("v = tf.Variable(1.0)", "Variable"),
    ("x = other(x)", "other"),
    ("x = f'{x}'", "Python that"),
    ("x = x + array", "array"),
    ("x = x * unknown", "unknown"),
    ("g = lambda v: v\n    x = g(x)", "Python that"),
    ("try:\n        pass\n    except ValueError:\n        pass", "Python that"),
    ("tf.summary.scalar('x', 1.0)", "effect outside"),
    ("assert x.shape[0] == 4", "Python that"),
    ("x = x and y", "Python that"),
    ("x = tf.map_fn(other, x)", "other"),
    ("if tf.executing_eagerly():\n        pass", "decides by"),
    ("with open('f') as f:\n        pass", "other than a tape"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "why"), TRAPS)
def test_python_in_the_step_declines(body: str, why: str) -> None:
    with pytest.raises(Declined, match=re.escape(why)):
        edited("tf-function", script(body), "for x, y")


@pytest.mark.parametrize("result", ["float(loss)", "loss.numpy()", "1.0", "loss, 3", "RATE", "loss, NAMES"])
def test_results_that_a_graph_would_change_decline(result: str) -> None:
    with pytest.raises(Declined, match=r"needs the values|returns a constant"):
        edited("tf-function", script(result=result), "for x, y")


CHANGES = [
    ("RATE *= 0.9", "RATE"),
    ("RATE = 0.1", "RATE"),
    ("model = keras.Sequential([])", "model"),
    ("model.trainable = False", "trainable"),
    ("train_step(x.numpy(), y)", "gets a tensor"),
    ("train_step(array, y)", "gets a tensor"),
    ("train_step(epoch, y)", "gets a tensor"),
    ("map(train_step, x)", "only called by its name"),
    ("tf.config.run_functions_eagerly(True)", "run_functions_eagerly"),
    ("x = ds.padded_batch(4)", "differ in shape"),
]  # fmt: skip


@pytest.mark.parametrize(("after", "why"), CHANGES)
def test_what_the_step_reads_must_not_change(after: str, why: str) -> None:
    with pytest.raises(Declined, match=re.escape(why)):
        edited("tf-function", script(after=after), "for x, y")


def test_the_rate_of_an_optimizer_may_change() -> None:
    assert "@tf.function" in edited("tf-function", script(after="opt.learning_rate = 0.1"), "for x, y")


REWRITES = [
    ("from_tensor_slices((a, b)).shuffle(9).batch(4)", "as_numpy(q)", "gets a tensor"),
    ("for x, y in ds.take(7)", "for x, y in zip(a, b)", "gets a tensor"),
    ("for x, y in ds.take(7)", "for y, x in enumerate(ds)", "gets a tensor"),
    ("for x, y in ds.take(7)", "for x, y in ds.as_numpy_iterator()", "gets a tensor"),
    ("def train_step", "@decorated\ndef train_step", "decorator"),
    ("import tensorflow as tf", "import tensorflow.compat.v2 as tf", "effect outside"),
    ("keras.layers.Dense(4)]", "keras.layers.Lambda(scaled)]", "may need eager steps"),
    ("keras.layers.Dense(4)]", "keras.layers.Dense(4, activation=other)]", "may need eager steps"),
    ("model = keras.Sequential([keras.layers.Dense(4)])", "model = other()", "model"),
    ("return x * RATE", "return x * array", "array"),
    ("def scaled(x):\n    return x * RATE", "def scaled(x, f=other):\n    return f(x)", "calls other()"),
    ("return x * RATE", "print(x)\n    return x", "print"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "why"), REWRITES)
def test_unknown_data_and_models_decline(old: str, new: str, why: str) -> None:
    text = script()
    assert old in text
    with pytest.raises(Declined, match=re.escape(why)):
        edited("tf-function", text.replace(old, new), "for ")


LAYER = """

class Block(keras.layers.Layer):
    def __init__(self, width):
        super().__init__()
        self.inner = [keras.layers.Dense(width) for _ in range(2)]
        self.last = keras.layers.Dense(width)

    def call(self, x, training=None):
        for layer in self.inner:
            x = layer(x)
        {body}
        return self.last(x)
"""


def with_layer(body: str) -> str:
    text = script().replace("[keras.layers.Dense(4)]", "[Block(4)]")
    return text.replace("\nRATE,", LAYER.format(body=body) + "\nRATE,", 1)


@pytest.mark.parametrize("body", ["pass", "if training:\n            x = tf.nn.dropout(x, 0.5)"])
def test_layers_of_the_file_that_are_pure(body: str) -> None:
    assert "@tf.function" in edited("tf-function", with_layer(body), "for x, y")


@pytest.mark.parametrize(
    "body",
    [
        "self.calls += 1",
        "print(x)",
        "x = x * float(x[0])",
        "x = self.unknown(x)",
        "if x[0] > 0:\n            x = -x",
    ],
)
def test_layers_of_the_file_that_are_not(body: str) -> None:
    with pytest.raises(Declined, match="line"):
        edited("tf-function", with_layer(body), "for x, y")


FUNCTIONS = """import keras
import tensorflow as tf


class Net(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(2)

    def encode(self, x):
        return self.dense(x)

    def call(self, x):
        return self.encode(x)


def data():
    train = tf.data.Dataset.range(8).map(lambda i: tf.fill([2], tf.cast(i, tf.float32))).batch(4)
    return train, train.take(1)


def step(model, optimizer, x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model.encode(x) + model(x))
    variables = model.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    return loss


def train(epochs):
    dataset, _ = data()
    model, optimizer = Net(), keras.optimizers.SGD(0.1)
    for epoch in range(epochs):
        for x in dataset:
            loss = step(model, optimizer, x)
        print(epoch, float(loss))


train(2)
"""


def test_models_and_data_are_followed_through_functions() -> None:
    made = edited("tf-function", FUNCTIONS, "for x in")
    assert made == FUNCTIONS.replace("def step", "@tf.function\ndef step")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("        for x in dataset", "        model = Net()\n        for x in dataset"),
        ("range(8).map(", "range(8).as_numpy_iterator("),
        ("return self.dense(x)\n", "print(x)\n        return self.dense(x)\n"),
        ("import tensorflow as tf", "import jax as tf"),
        ("\ntrain(2)", "\nfor _ in range(3):\n    train(2)"),
        ("\ntrain(2)", "\ntrain(2)\ntrain(3)"),
        ("step(model, optimizer, x)\n        print",
         "step(model, optimizer, x)\n            step(Net(), optimizer, x)\n        print"),
    ],
)  # fmt: skip
def test_models_and_data_that_change_decline(old: str, new: str) -> None:
    assert old in FUNCTIONS
    with pytest.raises(Declined):
        edited("tf-function", FUNCTIONS.replace(old, new), "for x in")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("import tensorflow as tf\nfor x in ds:\n    pass\n", "calls no function"),
        ("import tensorflow as tf\nfor x in ds:\n    with tf.GradientTape() as t:\n        pass\n",
         "in the body of the loop"),
        ("import tensorflow as tf\nx = 1\n", "no loop"),
    ],
)  # fmt: skip
def test_a_loop_without_a_step_declines(text: str, why: str) -> None:
    with pytest.raises(Declined, match=why):
        edited("tf-function", text, "for x in" if "for" in text else "x = 1")


@pytest.mark.parametrize("rest", ["", "\nmodel = other(model)\n"])
def test_a_name_of_the_file_that_is_bound_again_above_is_fixed(rest: str) -> None:
    text = script("x = x * masks").replace(
        "\n\ndef scaled", "masks = np.ones(3)\nmasks[0] = 2.0\nmasks = tf.constant(masks)\n\n\ndef scaled"
    )
    assert "@tf.function" in edited("tf-function", text, "for x, y")
    for below in ("masks = tf.zeros(3)\n", "masks[0] = 3\n"):
        with pytest.raises(Declined, match="masks"):
            edited("tf-function", text + below + rest, "for x, y")
