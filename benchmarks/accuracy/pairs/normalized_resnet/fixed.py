"""An image user: residual blocks with batch normalization, as every tutorial has them."""

import keras
import numpy as np
import tensorflow as tf

from stopwatch import tick

keras.utils.set_random_seed(18)
rng = np.random.default_rng(18)
x = rng.random((16 * 25, 48, 48, 3), dtype=np.float32)
y = rng.integers(0, 10, len(x))


class FusedBatchNormalization(keras.layers.BatchNormalization):
    """Same weights, one operation: for channels-last input of rank 4."""

    def call(self, inputs, training=None, mask=None):
        """Normalize."""
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


def normalized(x, filters):
    """Return a convolution with normalization and activation."""
    x = keras.layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
    x = FusedBatchNormalization()(x)
    return keras.layers.ReLU()(x)


inputs = keras.Input((48, 48, 3))
x_in = normalized(inputs, 32)
for _ in range(2):
    x_in = keras.layers.Add()([x_in, normalized(normalized(x_in, 32), 32)])
pooled = keras.layers.GlobalAveragePooling2D()(x_in)
model = keras.Model(inputs, keras.layers.Dense(10, activation="softmax")(pooled))
model.compile("adam", "sparse_categorical_crossentropy")
watch = keras.callbacks.LambdaCallback(on_train_batch_begin=lambda batch, logs: tick())
model.fit(x, y, batch_size=16, epochs=6, verbose=2, callbacks=[watch])
