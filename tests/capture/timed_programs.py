"""Programs that time themselves, and the account of a run that agrees with them."""

from collections import Counter

from tests.kit import *

BEGIN = """
import contextlib, json, os, sys, threading, time, traceback
import numpy as np
import tensorflow as tf
TIMES, WAITED = {}, {}
def waited():  # for a core, in s: what may lie between two looks at a clock
    total = 0
    for number in os.listdir("/proc/self/task"):
        with contextlib.suppress(OSError), open(f"/proc/self/task/{number}/schedstat") as file:
            total += int(file.read().split()[1])
    return total / 1e9
@contextlib.contextmanager
def timed(name):
    before = waited()
    began = time.perf_counter()
    yield
    TIMES[name] = TIMES.get(name, 0.0) + time.perf_counter() - began
    WAITED[name] = WAITED.get(name, 0.0) + max(0.0, waited() - before)
x = np.random.default_rng(0).normal(size=(640, 16)).astype("float32")
y = x[:, :1] * 2
def model(keras):
    return keras.Sequential([keras.layers.Dense(32, activation="relu"), keras.layers.Dense(1)])
"""

END = """
with open("{}.json", "w") as file:
    json.dump([TIMES, WAITED], file)
"""


TIMED_KERAS = """
m = model(keras)
for epoch in range(2):
    with timed("compile"):
        m.compile("sgd", "mse")
    with timed("fit"):
        m.fit(x, y, epochs=2, verbose=0, validation_data=(x, y))
with timed("predict"):
    for n in range(10):
        m.predict(x[:32], verbose=0)
with timed("evaluate"):
    m.evaluate(x, y, verbose=0)
with timed("save"):
    m.save("saved.keras")
with timed("batches"):
    for n in range(20):
        m.train_on_batch(x[:32], y[:32])
class Slow(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        with timed("callback"):
            time.sleep(0.2)
            self.model.predict(x[:32], verbose=0)
with timed("fit"):
    m.fit(x, y, epochs=2, verbose=0, callbacks=[Slow()])
with timed("wait"):
    time.sleep(0.5)
"""

TIMED_LOOPS = """
w = tf.Variable(tf.zeros((16, 1)))
data = tf.data.Dataset.from_tensor_slices((x, y)).batch(32)
def train(x, y, rate):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((x @ w - y) ** 2)
    if tf.executing_eagerly():
        at.append(time.perf_counter())
    w.assign_sub(rate * tape.gradient(loss, w))
    if tf.executing_eagerly():
        time.sleep(0.005)
    return loss
step, other = tf.function(train), tf.function(train)
TIMES["loop"], before = 0, waited()
for epoch in range(3):
    at = []
    for a, b in data:
        at.append(time.perf_counter())
        step(a, b, 0.1)
        over = time.perf_counter()
        time.sleep(0.002)
    TIMES["loop"] += over - at[0]
WAITED["loop"] = max(0.0, waited() - before)
with timed("preparation"):
    time.sleep(0.4)
TIMES["eager"], before = 0, waited()
for epoch in range(3):
    at = []
    for a, b in data:
        train(a, b, 0.1)
    TIMES["eager"] += at[-1] - at[0]  # from gradient to gradient
WAITED["eager"] = max(0.0, waited() - before)
with timed("gan"):
    for a, b in data:
        step(a, b, 0.1)
        other(a, b, 0.1)
        step(a, b, 0.1)
"""

ONE_LINE = """
w = tf.Variable(tf.ones((16, 16)))
@tf.function
def step(x, training):
    if not training:
        for _ in tf.range(5000):
            x = tf.nn.relu(x @ w * 0.01)
        return tf.reduce_mean(x)
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((x @ w) ** 2)
    w.assign_sub(0.001 * tape.gradient(loss, w))
    return loss
def run(x, training):
    return step(x, training).numpy()
TIMES["training"] = TIMES["validation"] = 0
run(x, True)
run(x, False)
for epoch in range(3):
    with timed("training"):
        for n in range(60):
            run(x, True)
            time.sleep(0.002)
    with timed("validation"):
        for n in range(4):
            run(x, False)
"""

TIMED_SESSION = """
tf.compat.v1.disable_eager_execution()
v1 = tf.compat.v1
v1.reset_default_graph()
a = v1.placeholder(tf.float32, (None, 16))
w = v1.get_variable("w", (16, 1))
loss = tf.reduce_mean(tf.matmul(a, w) ** 2)
train = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
with v1.Session() as session:
    session.run(v1.global_variables_initializer())
    with timed("loop"):
        for n in range(100):
            session.run([train, loss], {a: x[:32]})
            time.sleep(0.004)
    with timed("evaluation"):
        for n in range(50):
            session.run(loss, {a: x})
    saver = v1.train.Saver()
    with timed("save"):
        saver.save(session, "./model")
"""

TIMED_THREADS = """
def train():
    w = tf.Variable(tf.zeros((16, 1)))
    @tf.function
    def step(x, y):
        with timed("tracing"), tf.GradientTape() as tape:
            for n in range(300):
                x = x + tf.cast(n, tf.float32) * 1e-9
            loss = tf.reduce_mean((x @ w - y) ** 2)
        w.assign_sub(0.1 * tape.gradient(loss, w))
    with timed("training"):
        with timed("first"):
            step(x, y)
        for n in range(50):
            step(x, y)
            time.sleep(0.01)
def eager():
    w = tf.Variable(tf.zeros((16, 1)))
    for n in range(80):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((x @ w - y) ** 2)
        w.assign_sub(0.1 * tape.gradient(loss, w))
        time.sleep(0.01)
for target in (train, train, eager):
    thread = threading.Thread(target=target)
    thread.start()
    thread.join()
    with timed("main"):
        time.sleep(0.5)
m = model(tf.keras)
m.compile("sgd", "mse")
with timed("fit"):
    m.fit(x, y, verbose=0)
"""

TIMED = {
    "keras": f"import keras\n{TIMED_KERAS}",
    "tf_keras": f"import tf_keras as keras\n{TIMED_KERAS}",
    "loops": TIMED_LOOPS + ONE_LINE,
    "threads": TIMED_THREADS,
}


class Account:
    """What run.jsonl adds up to, and the times by the script's own timer, in which it waited so long for a core."""

    def __init__(self, folder: Path, timed: Path | None = None) -> None:
        self.lines = [json.loads(line) for line in (folder / "run.jsonl").read_text().splitlines()]
        self.timed: dict[str, float]
        self.waited: dict[str, float]
        self.timed, self.waited = json.loads(timed.read_text()) if timed else ({}, {})
        self.calls: dict[int, Any] = {line["id"]: line for line in self.of("call")}
        (self.end,) = self.of("end")

    def of(self, kind: str) -> list[Any]:
        return [line for line in self.lines if line["kind"] == kind]

    def within(self, number: int | None, kind: str) -> bool:
        if number is None:
            return False
        return self.calls[number]["call"] == kind or self.within(self.calls[number]["parent"], kind)

    def parts(self, what: str) -> Iterator[tuple[int, float]]:
        """Yield the calls of each bucket, and how much of something each of them has."""
        return ((int(number), one) for bucket in self.of("bucket") for number, one in bucket[what].items())

    def seconds(self, kind: str) -> float:
        """Return the s in calls of a kind and in all that is within them."""
        return sum(ms / 1e3 for number, ms in self.parts("calls") if self.within(number, kind))

    def entered(self, *kinds: str) -> Any:
        """Return how often calls of a kind were entered; of several, each."""
        counts = Counter[str]()
        for number, count in self.parts("entered"):
            counts[self.calls[number]["call"]] += int(count)
        return counts[kinds[0]] if len(kinds) == 1 else {kind: counts[kind] for kind in kinds}

    def spans(self) -> Counter[str]:
        return Counter(self.calls[span["call"]]["call"] for span in self.of("span"))

    def steps(self, source: str = "", at: int = 0) -> list[Any]:
        """Return the steps of a source, and at a line."""
        steps = [step for bucket in self.of("bucket") for step in bucket["steps"]]
        return [step for step in steps if source in ("", step["source"]) and at in (0, step["at"][1])]

    def count(self, source: str) -> int:
        return sum(step["steps"] for step in self.steps(source))

    def took(self, source: str = "", at: int = 0) -> float:
        """Return the s of steps."""
        return float(sum(step["ms"] for step in self.steps(source, at))) / 1e3

    def agrees(self, found: float, name: str, calls: int = 1) -> None:
        """Agree with the script's timer within 3 % or 30 ms for a call, beside waits for a core."""
        assert found == pytest.approx(self.timed[name], rel=0.03, abs=0.03 * calls + self.waited[name])

    def is_whole(self) -> None:
        whole = self.end["end"] - self.lines[0]["began"]
        assert self.seconds("script") == pytest.approx(whole, rel=0.03, abs=0.03)
