"""A tabular user: compressed TFRecord shards, interleaved but read by one thread."""

import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf

from stopwatch import tick

tf.keras.utils.set_random_seed(10)
SHARDS, ROWS, WIDTH, USED, BATCH = 8, 256, 16384, 1024, 64


def write(folder):
    """Write the shards."""
    rng = np.random.default_rng(10)
    for shard in range(SHARDS):
        path = str(Path(folder, f"{shard}.tfrecord.gz"))
        with tf.io.TFRecordWriter(path, tf.io.TFRecordOptions(compression_type="GZIP")) as writer:
            for row in rng.integers(0, 200, (ROWS, WIDTH), dtype="uint8"):
                writer.write(row.tobytes())


def read(folder):
    """Return a dataset of all shards."""
    files = tf.data.Dataset.list_files(f"{folder}/*.gz", shuffle=False).repeat()
    records = files.interleave(
        lambda name: tf.data.TFRecordDataset(name, "GZIP"),
        cycle_length=2,
        num_parallel_calls=tf.data.AUTOTUNE,
    )
    return records.batch(BATCH).prefetch(tf.data.AUTOTUNE)


class Scorer(tf.keras.Model):
    """A linear model of the first bytes."""

    def __init__(self):
        super().__init__()
        self.head = tf.keras.layers.Dense(1)

    def call(self, records):
        """Return a score for each record."""
        values = tf.io.decode_raw(tf.strings.substr(records, 0, USED), tf.uint8)
        return self.head(tf.cast(tf.reshape(values, (BATCH, USED)), tf.float32) / 255.0)


model = Scorer()
optimizer = tf.keras.optimizers.SGD(0.01)


@tf.function
def train_step(records):
    """Learn to score one."""
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(records) - 1.0) ** 2)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


with tempfile.TemporaryDirectory() as folder:
    write(folder)
    for step, records in enumerate(read(folder).take(1400)):
        tick()
        loss = train_step(records)
        if step % 100 == 0:
            print(f"{step}: {loss:.4f}")
