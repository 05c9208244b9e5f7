"""The training of `float32_convnet.py` in bfloat16, in whole blocks, with a fused batch norm.

On a CPU without avx512_bf16 or amx_bf16 leave the policy away: there bfloat16 is no faster.
"""

import keras
import numpy as np
import tensorflow as tf

IMAGES, SIZE, CLASSES, BATCH = 640, 32, 10, 16


class FusedBatchNormalization(keras.layers.BatchNormalization):
    """Same weights, one operation: for channels-last input of rank 4."""

    def call(self, inputs, training=None, mask=None):
        """Normalize by TensorFlow's fused operation while training."""
        if not (training and self.trainable and self.scale and self.center):
            return super().call(inputs, training=training, mask=mask)
        outputs, mean, variance, *_ = tf.compat.v1.nn.fused_batch_norm(
            inputs,
            tf.cast(self.gamma, "float32"),
            tf.cast(self.beta, "float32"),
            epsilon=self.epsilon,
            is_training=True,
        )
        keep = self.momentum
        self.moving_mean.assign(keep * self.moving_mean + (1 - keep) * mean)
        self.moving_variance.assign(keep * self.moving_variance + (1 - keep) * variance)
        return outputs


def block(x, channels):
    """Convolve, normalize, activate."""
    x = keras.layers.Conv2D(channels, 3, padding="same", use_bias=False)(x)
    x = FusedBatchNormalization()(x)
    return keras.layers.ReLU()(x)


def main():
    """Train for four epochs."""
    keras.utils.set_random_seed(0)
    keras.mixed_precision.set_global_policy("mixed_bfloat16")
    images = np.random.default_rng(0).random((IMAGES, SIZE, SIZE, 3), dtype=np.float32)
    labels = np.arange(IMAGES) % CLASSES

    inputs = keras.Input((SIZE, SIZE, 3))
    x = block(inputs, 32)
    x = block(x, 32)
    x = keras.layers.MaxPooling2D()(x)
    x = block(x, 64)
    x = keras.layers.GlobalAveragePooling2D()(x)
    model = keras.Model(inputs, keras.layers.Dense(CLASSES, dtype="float32")(x))

    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(images, labels, batch_size=BATCH, epochs=4, verbose=2)


if __name__ == "__main__":
    main()
