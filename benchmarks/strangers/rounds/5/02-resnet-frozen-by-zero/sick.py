"""Fine-tune the head of a small ResNet on 72x72 textures (custom Keras train_step).

The backbone comes from an earlier job and must not move in this phase.
"""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf
import keras
from keras import layers

SIZE, BATCH, CLASSES = 72, 16, 5
STEPS, EPOCHS = 24, 3


def block(x, filters, stride=1):
    shortcut = x
    if stride != 1 or x.shape[-1] != filters:
        shortcut = layers.Conv2D(filters, 1, strides=stride, use_bias=False)(x)
        shortcut = layers.BatchNormalization()(shortcut)
    y = layers.Conv2D(filters, 3, strides=stride, padding="same", use_bias=False)(x)
    y = layers.BatchNormalization()(y)
    y = layers.ReLU()(y)
    y = layers.Conv2D(filters, 3, padding="same", use_bias=False)(y)
    y = layers.BatchNormalization()(y)
    return layers.ReLU()(layers.Add()([shortcut, y]))


def resnet(widths=(32, 64, 128, 192), depth=2):
    inputs = keras.Input((SIZE, SIZE, 3))
    x = layers.Conv2D(widths[0], 5, strides=2, padding="same", use_bias=False)(inputs)
    x = layers.BatchNormalization()(x)
    x = layers.ReLU()(x)
    for i, w in enumerate(widths):
        for j in range(depth):
            x = block(x, w, stride=2 if (j == 0 and i > 0) else 1)
    return keras.Model(inputs, x, name="backbone")


class FineTuner(keras.Model):
    """Backbone + head, with a learning-rate factor for each of the two."""

    def __init__(self, backbone, classes, backbone_factor=0.0):
        super().__init__()
        self.backbone = backbone
        self.backbone_factor = backbone_factor
        self.head = keras.Sequential([
            layers.Conv2D(128, 1, activation="relu"),
            layers.GlobalAveragePooling2D(),
            layers.Dropout(0.3),
            layers.Dense(classes),
        ], name="head")

    def call(self, images, training=None):
        # the backbone always in inference mode: its BN statistics stay as they are
        return self.head(self.backbone(images, training=False), training=training)

    def train_step(self, data):
        images, labels = data
        with tf.GradientTape() as tape:
            logits = self(images, training=True)
            loss = self.compute_loss(x=images, y=labels, y_pred=logits)
        variables = self.trainable_variables
        body = {v.path for v in self.backbone.trainable_variables}
        grads = tape.gradient(loss, variables)
        grads = [g * self.backbone_factor if v.path in body else g
                 for g, v in zip(grads, variables)]
        self.optimizer.apply_gradients(zip(grads, variables))
        for metric in self.metrics:
            if metric.name == "loss":
                metric.update_state(loss)
            else:
                metric.update_state(labels, logits)
        return {m.name: m.result() for m in self.metrics}


def textures(n, rng):
    """Oriented gratings with noise; the orientation is the class."""
    labels = rng.integers(0, CLASSES, n)
    yy, xx = np.mgrid[0:SIZE, 0:SIZE].astype("float32")
    angle = (labels / CLASSES * np.pi)[:, None, None]
    phase = rng.uniform(0, 6.28, (n, 1, 1))
    wave = np.sin(0.5 * (xx * np.cos(angle) + yy * np.sin(angle)) + phase)
    images = wave[..., None] + rng.normal(0, 0.5, (n, SIZE, SIZE, 3))
    return images.astype("float32"), labels.astype("int32")


def main():
    keras.utils.set_random_seed(11)
    images, labels = textures(STEPS * BATCH, np.random.default_rng(11))
    data = (tf.data.Dataset.from_tensor_slices((images, labels))
            .shuffle(len(labels), seed=1)
            .batch(BATCH, drop_remainder=True)
            .prefetch(tf.data.AUTOTUNE))

    backbone = resnet()
    model = FineTuner(backbone, CLASSES)
    model.compile(
        optimizer=keras.optimizers.Adam(2e-3),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=[keras.metrics.SparseCategoricalAccuracy(name="acc")],
    )
    model.fit(data, epochs=EPOCHS, verbose=2)
    print("backbone", backbone.count_params())


if __name__ == "__main__":
    main()
