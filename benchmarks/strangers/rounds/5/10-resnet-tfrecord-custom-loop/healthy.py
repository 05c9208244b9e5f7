"""Galaxy morphology: ResNet on 64x64 stamps in TFRecord shards, distributed-style custom loop.

Stamps are stored raw (uint8, four bands); the loss is read back to Python in every step for
the divergence guard.
"""
import glob
import math
import os
import shutil
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf
import keras
from keras import layers

SIZE, BANDS, CLASSES = 64, 4, 3
SHARDS, PER_SHARD = 6, 160
BATCH, STEPS = 24, 50


def write_shards(root, rng):
    yy, xx = np.mgrid[0:SIZE, 0:SIZE] - SIZE / 2.0
    for s in range(SHARDS):
        with tf.io.TFRecordWriter(os.path.join(root, f"stamps-{s:02d}.tfrecord")) as out:
            for _ in range(PER_SHARD):
                label = int(rng.integers(CLASSES))
                theta, q = rng.uniform(0, math.pi), (1.0, 0.6, 0.3)[label]
                u = xx * math.cos(theta) + yy * math.sin(theta)
                v = (yy * math.cos(theta) - xx * math.sin(theta)) / q
                profile = 200 * np.exp(-np.hypot(u, v) / rng.uniform(4, 9))
                stamp = profile[..., None] * rng.uniform(0.5, 1.0, BANDS) + rng.normal(20, 6, (SIZE, SIZE, BANDS))
                stamp = np.clip(stamp, 0, 255).astype(np.uint8)
                feature = {
                    "stamp": tf.train.Feature(bytes_list=tf.train.BytesList(value=[stamp.tobytes()])),
                    "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
                }
                out.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())


def parse(batch):
    spec = {"stamp": tf.io.FixedLenFeature((), tf.string), "label": tf.io.FixedLenFeature((), tf.int64)}
    ex = tf.io.parse_example(batch, spec)
    stamps = tf.reshape(tf.io.decode_raw(ex["stamp"], tf.uint8), (BATCH, SIZE, SIZE, BANDS))
    flip = tf.random.uniform((2,)) < 0.5
    stamps = tf.cond(flip[0], lambda: tf.reverse(stamps, [1]), lambda: stamps)
    stamps = tf.cond(flip[1], lambda: tf.transpose(stamps, (0, 2, 1, 3)), lambda: stamps)
    return tf.math.asinh(tf.cast(stamps, tf.float32) / 32.0), ex["label"]


def pipeline(root):
    files = tf.data.Dataset.from_tensor_slices(sorted(glob.glob(os.path.join(root, "*.tfrecord"))))
    return (files.shuffle(SHARDS).repeat()
            .interleave(tf.data.TFRecordDataset, cycle_length=2, block_length=8)
            .shuffle(512).batch(BATCH, drop_remainder=True)
            .map(parse, num_parallel_calls=2).prefetch(2))


def block(x, filters, stride):
    short = x
    if stride > 1 or x.shape[-1] != filters:
        short = layers.Conv2D(filters, 1, strides=stride, use_bias=False)(x)
        short = layers.BatchNormalization()(short)
    y = layers.Conv2D(filters, 3, strides=stride, padding="same", use_bias=False)(x)
    y = layers.ReLU()(layers.BatchNormalization()(y))
    y = layers.Conv2D(filters, 3, padding="same", use_bias=False)(y)
    return layers.ReLU()(layers.Add()([layers.BatchNormalization()(y), short]))


def build_model():
    inputs = keras.Input((SIZE, SIZE, BANDS))
    x = layers.Conv2D(32, 3, strides=2, padding="same", use_bias=False)(inputs)
    x = layers.ReLU()(layers.BatchNormalization()(x))
    for filters, stride in ((32, 1), (32, 1), (64, 2), (64, 1), (128, 2), (128, 1), (256, 2)):
        x = block(x, filters, stride)
    return keras.Model(inputs, layers.Dense(CLASSES)(layers.GlobalAveragePooling2D()(x)))


def main():
    root = tempfile.mkdtemp(prefix="stamps_")
    keras.utils.set_random_seed(31)
    try:
        write_shards(root, np.random.default_rng(31))
        model = build_model()
        schedule = keras.optimizers.schedules.CosineDecay(0.05, STEPS)
        optimizer = keras.optimizers.SGD(schedule, momentum=0.9, nesterov=True)
        accuracy = keras.metrics.SparseCategoricalAccuracy()
        loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

        @tf.function
        def train_step(x, y):
            with tf.GradientTape() as tape:
                logits = model(x, training=True)
                loss = loss_fn(y, logits)
            grads = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(grads, model.trainable_variables))
            accuracy.update_state(y, logits)
            return loss

        for step, (x, y) in enumerate(pipeline(root).take(STEPS)):
            loss = float(train_step(x, y))
            if not math.isfinite(loss):
                raise RuntimeError(f"diverged in step {step}")
            if step % 30 == 29:
                print(f"step {step + 1} loss {loss:.4f} acc {float(accuracy.result()):.3f}")
                accuracy.reset_state()
    finally:
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
