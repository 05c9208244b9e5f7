"""A seeded script that records parts of itself: `blocks.py record`, or `blocks.py plain` without."""

import contextlib
import hashlib
import sys
import time
import warnings

import keras
import tensorflow as tf
import tf_keras

RECORDS = sys.argv[1] == "record"
warnings.simplefilter("default")  # also those that this process has given before


def record(path, **options):
    """Return the block's context: none when this run is the one to compare with."""
    if not RECORDS:
        return contextlib.nullcontext()
    import tfdoctor  # noqa: PLC0415 - the other run is without

    return tfdoctor.record(path, **options)


def recorder(path, **options):
    if not RECORDS:
        return []
    import tfdoctor  # noqa: PLC0415 - same

    return [tfdoctor.Recorder(path, **options)]


def pipeline(batches, batch=4):
    x = tf.random.stateless_uniform([batches * batch, 8], seed=[1, 2])
    data = tf.data.Dataset.from_tensor_slices((x, tf.reduce_sum(x, axis=1, keepdims=True)))
    return data.map(double).batch(batch)


def double(x, y):
    return x * 2.0, y


weights = tf.Variable(tf.zeros([8, 1]))


@tf.function
def step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((tf.matmul(x, weights) - y) ** 2)
    weights.assign_sub(0.01 * tape.gradient(loss, weights))
    return loss


@tf.function
def predict(x):
    return tf.matmul(x, weights)


def several(which):
    for x, y in which:
        step(x, y)


def loops(data):
    """Record loops that no Keras is in."""
    with record("earlier"):
        several(data)

    with record("between"):
        for x, _ in data:
            predict(x)

    with contextlib.suppress(KeyError), record("raising", warmup=2, steps=5):
        several(data.take(20))
        raise KeyError("the block broke")

    with record("short"):
        several(data.take(6))

    with record("lent"):
        tf.profiler.experimental.start(f"{sys.argv[1]} logs")
        several(data)
        tf.profiler.experimental.stop()

    with record("timed", seconds=0.1):
        for x, y in data.take(40):
            step(x, y)
            time.sleep(0.01)


def compiled(keras):
    model = keras.Sequential([keras.layers.Dense(6, activation="relu"), keras.layers.Dense(1)])
    model.compile(optimizer=keras.optimizers.Adam(0.01), loss="mse")
    return model


def fits(keras, where, data, early):
    """Record fits of a Keras, with a model that was made before anybody looks, and others."""

    class Breaks(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if batch == 40:
                raise RuntimeError("the fit broke")

    class RecordsAPart(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            if batch == 5:
                self.part = record(f"{where}/part", steps=5, warmup=3)
                self.part.__enter__()

        def on_train_batch_end(self, batch, logs=None):
            if batch == 45:
                self.part.__exit__(None, None, None)

    with record(f"{where}/fit"):
        early.fit(data, verbose=0)

    with record(f"{where}/inner"):
        late, inner = compiled(keras), pipeline(80)
        late.fit(inner.prefetch(2), epochs=2, verbose=0)

    early.fit(data, verbose=0, callbacks=recorder(f"{where}/callback", steps=15))

    fresh = compiled(keras)
    with contextlib.suppress(RuntimeError):
        fresh.fit(pipeline(60), verbose=0, callbacks=[*recorder(f"{where}/broken"), Breaks()])

    with record(f"{where}/on_top"):
        late.fit(data.map(double).prefetch(1), verbose=0)

    with record(f"{where}/outer"):
        late.fit(data, verbose=0, callbacks=recorder(f"{where}/within"))

    early.fit(data, verbose=0, callbacks=[RecordsAPart()])
    return [*early.weights, *late.weights, *fresh.weights]


for each in (keras, tf_keras):
    each.backend.clear_session()  # as if nothing ran before in this process
    each.utils.set_random_seed(7)
data = pipeline(60)
early = {"keras 3": compiled(keras), "keras 2": compiled(tf_keras)}
several(data.take(3))  # traced before anybody looks
predict(tf.ones([2, 8]))
early["keras 3"].fit(data.take(2), verbose=0)
loops(data)
trained = [weights]
for name, each in (("keras 3", keras), ("keras 2", tf_keras)):
    trained += fits(each, name, data, early[name])
digest = hashlib.sha256()
for array in trained:
    digest.update(array.numpy().tobytes())
print(digest.hexdigest())
del data, early, trained, array  # functions that TensorFlow keeps hold all names of this module
