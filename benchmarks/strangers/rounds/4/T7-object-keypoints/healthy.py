"""Object keypoints with heatmaps: a small hourglass-like network finds the corners of a box."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf
from keras import layers

SIZE = 64
MAP = 32
KEYPOINTS = 8
SIGMA = 1.5
BATCH = 16


def draw(n, seed):
    """Rotated boxes on noise; 4 corners and 4 edge midpoints, in pixels of the image."""
    rng = np.random.default_rng(seed)
    images = rng.normal(0.3, 0.08, (n, SIZE, SIZE, 3)).astype("float32")
    points = np.zeros((n, KEYPOINTS, 2), "float32")
    yy, xx = np.mgrid[0:SIZE, 0:SIZE]
    for i in range(n):
        center = rng.uniform(24, 40, 2)
        half = rng.uniform(8, 16, 2)
        a = rng.uniform(0, np.pi)
        rot = np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])
        unit = [(-1, -1), (-1, 1), (1, 1), (1, -1), (-1, 0), (0, 1), (1, 0), (0, -1)]
        points[i] = (np.array(unit) * half) @ rot.T + center
        local = (np.stack([xx, yy], -1) - center) @ rot
        inside = (np.abs(local) < half).all(-1)
        images[i][inside] = rng.uniform(0.5, 1, 3)
    return images, np.clip(points, 0, SIZE - 1)


class KeypointNet(keras.Model):
    def __init__(self, width=40, **kwargs):
        super().__init__(**kwargs)
        conv = lambda f, s=1: layers.Conv2D(f, 3, strides=s, padding="same", activation="relu")
        self.stem = keras.Sequential([conv(width, 2), conv(width)])
        self.down = keras.Sequential([conv(2 * width, 2), conv(2 * width)])
        self.bottom = keras.Sequential([conv(3 * width, 2), conv(3 * width)])
        self.up1 = layers.Conv2DTranspose(2 * width, 2, strides=2, activation="relu")
        self.up2 = layers.Conv2DTranspose(width, 2, strides=2, activation="relu")
        self.head = layers.Conv2D(KEYPOINTS, 1)
        self.heatmap_loss = keras.metrics.Mean(name="loss")
        self.pixel_error = keras.metrics.Mean(name="pixel_error")

    @property
    def metrics(self):
        return [self.heatmap_loss, self.pixel_error]

    def call(self, x, training=False):
        a = self.stem(x)
        b = self.down(a)
        c = self.bottom(b)
        b = b + self.up1(c)
        a = a + self.up2(b)
        return self.head(a)

    def heatmaps(self, points):
        """One Gaussian per keypoint, peak 1."""
        grid = tf.range(MAP, dtype=tf.float32)
        maps = []
        for k in range(KEYPOINTS):
            p = points[:, k] * (MAP / SIZE)
            dx = tf.square(grid[None, :] - p[:, 0, None])
            dy = tf.square(grid[None, :] - p[:, 1, None])
            maps.append(tf.exp(-(dx[:, None, :] + dy[:, :, None]) / (2 * SIGMA**2)))
        return tf.stack(maps, axis=-1)

    def locate(self, maps):
        found = []
        for k in range(KEYPOINTS):
            flat = tf.reshape(maps[..., k], (-1, MAP * MAP))
            best = tf.argmax(flat, axis=1, output_type=tf.int32)
            found.append(tf.stack([best % MAP, best // MAP], axis=-1))
        return tf.cast(tf.stack(found, axis=1), tf.float32) * (SIZE / MAP)

    def train_step(self, data):
        images, points = data
        target = self.heatmaps(points)
        with tf.GradientTape() as tape:
            predicted = self(images, training=True)
            weight = 1.0 + 20.0 * target
            loss = tf.reduce_mean(weight * tf.square(predicted - target))
        grads = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.trainable_variables))
        error = tf.norm(self.locate(predicted) - points, axis=-1)
        self.heatmap_loss.update_state(loss)
        self.pixel_error.update_state(error)
        return {m.name: m.result() for m in self.metrics}


def augment(image, points):
    """Mirror; the order of the keypoints goes with it."""
    if tf.random.uniform([]) < 0.5:
        image = tf.image.flip_left_right(image)
        points = tf.stack([SIZE - 1 - points[:, 0], points[:, 1]], axis=-1)
        points = tf.gather(points, [3, 2, 1, 0, 6, 5, 4, 7])
    return image, points


def main():
    keras.utils.set_random_seed(21)
    images, points = draw(640, 21)
    ds = tf.data.Dataset.from_tensor_slices((images, points)).shuffle(640)
    ds = ds.map(augment).batch(BATCH, drop_remainder=True).prefetch(1)
    model = KeypointNet()
    model.compile(optimizer=keras.optimizers.Adam(1e-3), jit_compile=False)
    model.fit(ds, epochs=5, verbose=2)


if __name__ == "__main__":
    main()
