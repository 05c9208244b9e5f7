"""Action recognition on short clips: frames stored as JPEG lists inside TFRecords, small (2+1)D network."""
import os
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf
from keras import layers

keras.utils.set_random_seed(5)

FRAMES_PER_VIDEO = 40
CLIP_FRAMES = 8
FRAME_SIZE = 192
CROP = 48
WINDOW = 160
NUM_CLASSES = 4
BATCH_SIZE = 4
VIDEOS = 48
STEPS = 240


def render_video(label, rng):
    """A bright ball that moves left, right, up or down over a noisy background."""
    direction = np.array([(0, -1), (0, 1), (-1, 0), (1, 0)][label])
    start = rng.uniform(70, 122, 2) - 50 * direction
    background = rng.integers(0, 120, (FRAME_SIZE // 2, FRAME_SIZE // 2, 3)).astype("uint8")
    background = background.repeat(2, 0).repeat(2, 1)
    yy, xx = np.mgrid[0:FRAME_SIZE, 0:FRAME_SIZE]
    for t in range(FRAMES_PER_VIDEO):
        cy, cx = start + direction * t * 100 / FRAMES_PER_VIDEO
        frame = background.copy()
        frame[(yy - cy) ** 2 + (xx - cx) ** 2 < 260] = 240
        yield frame


def write_records(path, n):
    rng = np.random.default_rng(5)
    with tf.io.TFRecordWriter(path) as writer:
        for i in range(n):
            label = int(rng.integers(NUM_CLASSES))
            frames = [tf.io.encode_jpeg(f, quality=85).numpy() for f in render_video(label, rng)]
            feature = {
                "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
                "frames": tf.train.Feature(bytes_list=tf.train.BytesList(value=frames)),
            }
            example = tf.train.Example(features=tf.train.Features(feature=feature))
            writer.write(example.SerializeToString())


class ClipReader:
    SPEC = {
        "label": tf.io.FixedLenFeature([], tf.int64),
        "frames": tf.io.FixedLenFeature([FRAMES_PER_VIDEO], tf.string),
    }

    def __init__(self, clip_frames, crop):
        self.clip_frames = clip_frames
        self.crop = crop

    def sample_indices(self):
        stride = FRAMES_PER_VIDEO // self.clip_frames
        offset = tf.random.uniform([], 0, stride, tf.int32)
        return offset + stride * tf.range(self.clip_frames)

    def decode(self, frames):
        return tf.map_fn(
            lambda f: tf.io.decode_jpeg(f, channels=3), frames, fn_output_signature=tf.uint8
        )

    def parse(self, record):
        example = tf.io.parse_single_example(record, self.SPEC)
        video = self.decode(example["frames"])
        clip = tf.gather(video, self.sample_indices())
        clip = tf.image.random_crop(clip, (self.clip_frames, WINDOW, WINDOW, 3))
        clip = tf.image.resize(clip, (self.crop, self.crop)) / 255.0
        return clip, example["label"]

    def dataset(self, path, batch_size):
        ds = tf.data.TFRecordDataset(path).shuffle(64, seed=5).repeat()
        ds = ds.map(self.parse, num_parallel_calls=tf.data.AUTOTUNE)
        return ds.batch(batch_size).prefetch(tf.data.AUTOTUNE)


def conv2plus1d(x, filters, strides=1):
    x = layers.Conv3D(filters, (1, 3, 3), strides=(1, strides, strides), padding="same")(x)
    x = layers.Conv3D(filters, (3, 1, 1), padding="same")(x)
    x = layers.BatchNormalization()(x)
    return layers.ReLU()(x)


def build_model():
    inputs = keras.Input((CLIP_FRAMES, CROP, CROP, 3))
    x = conv2plus1d(inputs, 8, strides=2)
    x = conv2plus1d(x, 16, strides=2)
    x = conv2plus1d(x, 24, strides=2)
    x = layers.GlobalAveragePooling3D()(x)
    return keras.Model(inputs, layers.Dense(NUM_CLASSES)(x))


def main():
    path = os.path.join(tempfile.mkdtemp(), "train.tfrecord")
    write_records(path, VIDEOS)
    dataset = ClipReader(CLIP_FRAMES, CROP).dataset(path, BATCH_SIZE)

    model = build_model()
    optimizer = keras.optimizers.SGD(0.02, momentum=0.9)
    loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    accuracy = keras.metrics.SparseCategoricalAccuracy()

    @tf.function
    def train_step(clips, labels):
        with tf.GradientTape() as tape:
            logits = model(clips, training=True)
            loss = loss_fn(labels, logits)
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
        accuracy.update_state(labels, logits)
        return loss

    start = time.time()
    for step, (clips, labels) in enumerate(dataset.take(STEPS)):
        loss = train_step(clips, labels)
        if step % 20 == 19:
            print(f"{step + 1:4d}  loss {float(loss):.3f}  acc {float(accuracy.result()):.3f}  {time.time() - start:.1f} s")
            accuracy.reset_state()


if __name__ == "__main__":
    main()
