"""Real TensorFlow: the account's times are those of a plain timer in the script, and its counts are right."""

from tests.capture.run.kit import *
from tests.capture.running import cli, own_lines, plain, together

pytestmark = pytest.mark.tensorflow

BEGIN = """
import contextlib, json, sys, threading, time, traceback
import numpy as np
import tensorflow as tf
TIMES = {}
@contextlib.contextmanager
def timed(name):
    began = time.perf_counter()
    yield
    TIMES[name] = TIMES.get(name, 0.0) + time.perf_counter() - began
x = np.random.default_rng(0).normal(size=(640, 16)).astype("float32")
y = x[:, :1] * 2
def model(keras):
    return keras.Sequential([keras.layers.Dense(32, activation="relu"), keras.layers.Dense(1)])
"""

END = """
with open("{}.json", "w") as file:
    json.dump(TIMES, file)
"""


class Account:
    """What run.jsonl adds up to, and the times by the script's own timer."""

    def __init__(self, folder: Path, timed: Path | None = None) -> None:
        self.lines = [json.loads(line) for line in (folder / "run.jsonl").read_text().splitlines()]
        self.timed: dict[str, float] = json.loads(timed.read_text()) if timed else {}
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

    def is_whole(self) -> None:
        agrees(self.seconds("script"), self.end["end"] - self.lines[0]["began"])


Accounts = dict[str, Account]


@pytest.fixture(scope="module")
def accounts(tmp_path_factory: pytest.TempPathFactory) -> Accounts:
    """Return the accounts of all scripts, in one process; the last one runs no more eagerly."""
    folder = tmp_path_factory.mktemp("scripts")
    for name, text in SCRIPTS.items():
        (folder / f"train_{name}.py").write_text(BEGIN + text + END.format(name))
    runs = together(folder, {name: ([f"train_{name}.py"], {"trace": False}) for name in SCRIPTS})
    assert {name: run.manifest.agent_errors for name, run in runs.items()} == dict.fromkeys(runs, ())
    return {name: Account(run.out, folder / f"{name}.json") for name, run in runs.items()}


def agrees(found: float, timed: float, calls: int = 1) -> None:
    """Agree within 3 % or 30 ms for a call."""
    assert found == pytest.approx(timed, rel=0.03, abs=0.03 * calls)


KERAS = """
m = model(keras)
for epoch in range(3):
    with timed("compile"):
        m.compile("sgd", "mse")
    with timed("fit"):
        m.fit(x, y, epochs=2, verbose=0, validation_data=(x, y))
with timed("predict"):
    for n in range(30):
        m.predict(x[:32], verbose=0)
with timed("evaluate"):
    m.evaluate(x, y, verbose=0)
with timed("save"):
    m.save("model.keras")
with timed("batches"):
    for n in range(50):
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


@each("keras", "tf_keras")
def test_times_of_keras(keras: str, accounts: Accounts) -> None:
    found = accounts[keras]
    for kind in ("compile", "fit", "save"):
        agrees(found.seconds(kind), found.timed[kind])
    entered = {"fit": 4, "epoch": 8, "compile": 3, "predict": 32, "evaluate": 7}
    assert found.entered(*entered) == entered
    assert found.spans() == {**entered, "save": 1}
    traced = found.of("trace")
    assert sum(line["name"] != "f" for line in traced) >= 4
    assert found.entered("step") == 8 * 20 + 50
    counted = found.count("keras-fit") + found.count("keras-train-on-batch")
    assert counted + len(traced) >= found.entered("step") > counted - 1
    assert found.seconds("predict") >= found.timed["predict"] - 0.03
    found.is_whole()


LOOPS = """
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
TIMES["loop"] = 0
for epoch in range(3):
    at = []
    for a, b in data:
        at.append(time.perf_counter())
        step(a, b, 0.1)
        over = time.perf_counter()
        time.sleep(0.002)
    TIMES["loop"] += over - at[0]
with timed("preparation"):
    time.sleep(0.4)
TIMES["eager"] = 0
for epoch in range(3):
    at = []
    for a, b in data:
        train(a, b, 0.1)
    TIMES["eager"] += at[-1] - at[0]  # from gradient to gradient
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
        for _ in tf.range(20000):
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
for epoch in range(5):
    with timed("training"):
        for n in range(100):
            run(x, True)
            time.sleep(0.002)
    with timed("validation"):
        for n in range(4):
            run(x, False)
"""


def line_of(text: str) -> int:
    """Return the number of a line of the script that trains in loops."""
    return BEGIN.count("\n") + 1 + (LOOPS + ONE_LINE).splitlines().index(text)


def test_times_of_loops(accounts: Accounts) -> None:
    loops = accounts["loops"]
    counts: Counter[int] = Counter()
    for step in loops.steps():
        counts[step["at"][1]] += step["steps"]
    loop = line_of("        step(a, b, 0.1)")
    gan = line_of("        other(a, b, 0.1)") - 1
    eager = line_of("    w.assign_sub(rate * tape.gradient(loss, w))")
    one_line = line_of("    return step(x, training).numpy()")
    assert counts == {loop: 59, gan: 20, gan + 1: 19, gan + 2: 20, eager: 60, one_line: 500}  # three were traced
    assert loops.entered("step") == 60 + 60 + 60 + 501
    first, second = (line for line in loops.of("trace") if line["name"] == "train")
    assert (first["at"][1], second["at"][1]) == (loop, gan + 1)
    assert (first["numbers"], first["given"]) == ([{"name": "rate", "value": "0.1", "place": 1}], 3)
    agrees(loops.took(at=eager), loops.timed["eager"])
    agrees(loops.took(at=loop) + first["ms"] / 1e3, loops.timed["loop"])
    loops.is_whole()


def test_a_validation_by_the_function_and_at_the_line_of_the_training(accounts: Accounts) -> None:
    loops = accounts["loops"]
    assert loops.entered("test") >= 20
    agrees(loops.seconds("test"), loops.timed["validation"], calls=2)
    agrees(loops.took(at=line_of("    return step(x, training).numpy()")), loops.timed["training"], calls=5)


SESSION = """
tf.compat.v1.disable_eager_execution()
v1 = tf.compat.v1
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


def test_times_of_sessions(accounts: Accounts) -> None:
    found = accounts["session"]
    assert found.count("session-run") == 100
    agrees(found.took(), found.timed["loop"])
    agrees(found.seconds("save"), found.timed["save"])
    assert found.entered("function") >= 51
    assert any(bucket["counters"].get("graph", 0) > 10 for bucket in found.of("bucket"))


THREADS = """
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


def test_training_in_threads_and_then_in_the_main_thread(accounts: Accounts) -> None:
    found = accounts["threads"]
    assert (found.count("repeated-call"), found.count("eager-gradient")) == (2 * 51, 80)
    assert found.entered("step") == 2 * 51 + 80 + 20
    agrees(found.seconds("fit"), found.timed["fit"])
    in_threads = {
        number
        for number, call in found.calls.items()
        if call["call"] == "trace" and found.calls[call["parent"]]["call"] == "script"
    }
    traced = sum(ms / 1e3 for number, ms in found.parts("calls") if number in in_threads)
    assert traced >= found.timed["tracing"] > 0.1
    agrees(found.took("repeated-call") + traced, found.timed["training"], calls=4)


SCRIPTS = {
    "keras": f"import keras\n{KERAS}",
    "tf_keras": f"import tf_keras as keras\n{KERAS}",
    "loops": LOOPS + ONE_LINE,
    "threads": THREADS,
    "session": SESSION,
}

FAILS = (
    BEGIN
    + """
keras = tf.keras
m = model(keras)
m.compile("sgd", "mse")
def broken():
    yield x[:32], y[:32]
    raise ValueError("no more rows")
def train(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(x @ w)
    raise RuntimeError("in the loop")
class Stops(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        raise KeyError("callback")
w = tf.Variable(tf.zeros((16, 1)))
for name, call in {
    "fit": lambda: m.fit(broken(), verbose=0),
    "callback": lambda: m.fit(x, y, epochs=3, verbose=0, callbacks=[Stops()]),
    "evaluate": lambda: m.evaluate(x[:, :3], y, verbose=0),
    "predict": lambda: m.predict(x[:, :3], verbose=0),
    "load": lambda: keras.models.load_model("nowhere.keras"),
    "weights": lambda: m.load_weights("nowhere.weights.h5"),
    "batch": lambda: m.train_on_batch(x[:, :3], y),
    "function": lambda: tf.function(train)(x),
    "eager": lambda: train(x),
    "compile": lambda: m.compile(loss="no such loss"),
    "checkpoint": lambda: tf.train.Checkpoint(w=w).restore("/nowhere/ckpt"),
}.items():
    try:
        call()
        print(name, "passed")
    except Exception as error:
        print(name, type(error).__name__, str(error))
        print("".join(traceback.format_exception(error)))
m.compile("sgd", "mse")
try:
    raise ValueError
except ValueError:
    m.fit(x, y, verbose=0)  # while an exception is handled
m.predict(x[:, :3], verbose=0)
"""
)


def test_exceptions_are_the_scripts_and_end_the_call_they_come_from(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(FAILS)
    alone = plain(script)
    words = ("--no-trace", "--no-report", "--sample-every", "0", "--out", "out")
    done = cli("profile", *words, str(script), folder=tmp_path)
    assert done.returncode == alone.returncode == 1
    assert without_hooks(done.stdout) == GENERATED.sub("generated", alone.stdout)
    assert traceback_of(own_lines(done.stderr)) == traceback_of(alone.stderr)
    found = Account(tmp_path / "out")
    assert (found.end["why"], found.end["at"][1]) == ("exception", FAILS.count("\n"))
    assert found.within(found.end["call"], "predict")
    assert not (tmp_path / "out" / "run-now.json").exists()
    assert (found.spans()["fit"], found.spans()["epoch"]) == (3, 2)  # the first one failed before its epoch
    assert max(step["calls"] for step in found.steps()) >= 19


HOOK = re.compile(r'  File ".*\(tfdoctor\)", line \d+, in \w+\n(    .*\n)*')

GENERATED = re.compile(r"__autograph_generated_file\w+")


def without_hooks(text: str) -> str:
    """Return tracebacks without the frames of hooks, which Python cannot hide where the script prints them."""
    return GENERATED.sub("generated", HOOK.sub("", text))


def traceback_of(stderr: str) -> str:
    """Return the last traceback of a stderr, below which TensorFlow's own messages may differ."""
    return stderr[stderr.rindex("Traceback") :]
