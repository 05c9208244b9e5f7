"""`Model.fit` with `steps_per_execution=8` and a logging callback of the user's own."""

import json
import os
import tempfile

import keras
import tensorflow as tf

from stopwatch import tick

STEPS, EPOCHS, TOGETHER = 80, 3, 8


class ScalarLogger(keras.callbacks.Callback):
    """Writes scalars to a file, as TensorBoard's callback does."""

    def __init__(self, log_dir):
        super().__init__()
        self.writer = tf.io.TFRecordWriter(log_dir)
        self.batches = 0

    def write(self, kind, step, logs):
        """Write each scalar as a record."""
        for name, value in logs.items():
            self.writer.write(json.dumps([f"{kind}_{name}", step, float(value)]))

    def on_train_batch_begin(self, batch, logs=None):
        """Note when a call begins."""
        tick(TOGETHER)

    def on_train_batch_end(self, batch, logs=None):
        """Write what the batch gave."""
        self.batches += 1
        self.write("batch", self.batches, logs)

    def on_epoch_end(self, epoch, logs=None):
        """Write what the epoch gave, and print it."""
        self.write("epoch", epoch, logs)
        self.writer.flush()
        print(f"epoch {epoch}: loss={logs['loss']:.4f} mae={logs['mae']:.4f}")


def main():
    """Train for three epochs."""
    keras.utils.set_random_seed(6)
    x = tf.random.stateless_normal((STEPS * 64, 96), seed=(1, 6))
    y = tf.reduce_sum(tf.abs(x), axis=1, keepdims=True)
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(64, drop_remainder=True)
    dataset = dataset.prefetch(tf.data.AUTOTUNE)

    model = keras.Sequential([keras.Input((96,))])
    for _ in range(3):
        model.add(keras.layers.Dense(768, activation="gelu"))
    model.add(keras.layers.Dense(1))
    model.compile(
        optimizer=keras.optimizers.AdamW(1e-3),
        loss="mse",
        metrics=["mae"],
        steps_per_execution=TOGETHER,
    )
    with tempfile.TemporaryDirectory() as folder:
        logger = ScalarLogger(os.path.join(folder, "events"))
        model.fit(dataset, epochs=EPOCHS, verbose=0, callbacks=[logger])
        logger.writer.close()


if __name__ == "__main__":
    main()
