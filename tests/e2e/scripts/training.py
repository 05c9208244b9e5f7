"""A seeded training script with every way of training and of ending that the tests need."""

import atexit
import functools
import hashlib
import os
import signal
import sys

import keras
import numpy as np
import tensorflow as tf

FEATURES = 8

if budget := sys.modules.get("_tfdoctor_agent.process.budget"):
    budget.LEAST_S = budget.LONGEST_S = 60.0  # a busy machine starts the profiler slowly, even of a short run


def pipeline(batches, batch=4):
    x = tf.random.stateless_uniform([batches * batch, FEATURES], seed=[1, 2])
    y = tf.reduce_sum(x, axis=1, keepdims=True)
    return tf.data.Dataset.from_tensor_slices((x, y)).map(double).shuffle(16).batch(batch)


def double(x, y):
    return x * 2.0, y


class Twice(keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.inner = keras.layers.Dense(6)

    def call(self, x):
        return self.inner(x) * 2.0


def build(**options):
    model = keras.Sequential([keras.layers.Dense(5, activation="relu"), Twice(), keras.layers.Dense(1)])
    model.compile("adam", "mse", **options)
    return model


class At(keras.callbacks.Callback):
    """Calls something at a step."""

    def __init__(self, **actions):
        super().__init__()
        self.actions = actions

    def on_train_batch_begin(self, batch, logs=None):
        self.actions.get(f"step{batch}", lambda: None)()


def interrupt():
    os.kill(os.getpid(), signal.SIGINT)


def broken():
    raise ValueError("training broke")


def fit():
    model = build()
    model.fit(pipeline(20), epochs=3, verbose=0, validation_data=pipeline(3))
    return model


def arrays():
    """The user's profiler runs during our window, and Ctrl-C comes during the next."""
    model, start = build(), functools.partial(tf.profiler.experimental.start, sys.argv[2])
    x = np.ones([160, FEATURES], "float32")
    at = At(step15=start, step18=tf.profiler.experimental.stop, step30=interrupt)
    model.fit(x, x[:, :1], batch_size=4, epochs=1, verbose=0, callbacks=[at])


def execution():
    model = build(steps_per_execution=4)
    model.fit(pipeline(40), epochs=2, verbose=0)
    return model


class Fed(keras.utils.PyDataset):
    """Feeds an iterator whose thread waits for Python as the interpreter ends."""

    def __len__(self):
        return 4000

    def __getitem__(self, number):
        row = np.sort(np.random.default_rng(number).random(1_000_000))  # without Python's lock
        row = row[: 4 * FEATURES].reshape([4, FEATURES])
        return row, row[:, :1]


def finally_runs():
    atexit.register(print, "handled")
    open_file = open(sys.argv[2], "w")  # noqa: PTH123, SIM115 - left open
    open_file.write("written")
    try:
        build().fit(Fed(), verbose=0)
    finally:
        print("cleaned up")


def own_profiler_first():
    tf.profiler.experimental.start(sys.argv[2])
    model = fit()
    tf.profiler.experimental.stop()
    return model


def broken_agent():
    agent = sys.modules["_tfdoctor_agent.program.registry"]
    working, agent.here = agent.here, broken
    try:
        return fit()
    finally:
        agent.here = working


def custom():
    model, optimizer = build(), keras.optimizers.Adam()

    @tf.function
    def train(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x) - y) ** 2)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))

    @tf.function
    def check(x, y):
        return tf.reduce_mean((model(x) - y) ** 2)

    data, held_out = pipeline(12), pipeline(3)
    next(iter(data))  # a look at one batch is no step
    check(*next(iter(held_out)))  # nor is this; it is traced here, so that no window waits for that
    for _ in range(3):
        for x, y in data:
            train(x, y)
        for x, y in held_out:
            check(x, y)
    return model


def mirrored():
    """A custom loop over a distributed dataset, on two halves of the CPU."""
    (cpu,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    strategy = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
    with strategy.scope():
        weight = tf.Variable(tf.ones([FEATURES, 1]))

    def replica(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((x @ weight - y) ** 2)
        gradient = tape.gradient(loss, weight)
        summed = tf.distribute.get_replica_context().all_reduce("SUM", gradient)
        tf.distribute.get_replica_context().merge_call(apply, args=(weight, summed))

    def apply(_, weight, gradient):
        strategy.extended.update(weight, lambda v, g: v.assign_sub(0.001 * g), args=(gradient,))

    @tf.function
    def train(batch):
        strategy.run(replica, args=batch)

    data = strategy.experimental_distribute_dataset(pipeline(20))
    for _ in range(2):
        for batch in data:
            train(batch)


def on_batch():
    model = build()
    for x, y in pipeline(40):
        model.train_on_batch(x, y)
    return model


def warm_up_only():
    def examples():
        for _ in range(7):
            yield np.ones([4, FEATURES], "float32"), np.ones([4, 1], "float32")

    signature = (tf.TensorSpec([4, FEATURES]), tf.TensorSpec([4, 1]))
    data = tf.data.Dataset.from_generator(examples, output_signature=signature)
    model = build()
    for x, y in data:
        model.train_on_batch(x, y)
    return model


def pipelines():
    """Datasets whose numbers cannot be counted from Python alone."""
    files = tf.data.Dataset.range(4).interleave(
        lambda i: tf.data.Dataset.range(400).map(lambda x: x + i), cycle_length=2
    )
    for _ in files.take(3):
        pass
    weight = tf.Variable(1.0)
    data = files.map(lambda x: tf.cast(x, tf.float32)).batch(4).cache().repeat().take(40).prefetch(2)
    for x in data:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(x * weight)
        weight.assign_sub(0.001 * tape.gradient(loss, weight))


def digest(model, *more):
    found = hashlib.sha256()
    for weight in [*model.get_weights(), *more]:
        found.update(weight.tobytes())
    print(found.hexdigest(), flush=True)


if __name__ == "__main__":
    keras.utils.set_random_seed(7)
    trained = globals()[sys.argv[1]]()
    if trained is not None and trained.built:
        digest(trained)
