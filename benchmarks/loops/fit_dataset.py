"""`Model.fit` on a `tf.data` pipeline, with validation data and callbacks."""

import keras
import tensorflow as tf
from keras import layers

from stopwatch import tick

BATCH, SIZE, CLASSES, EPOCHS = 32, 32, 10, 3


def make_dataset(count, seed):
    """Return batches of noise in which a bright square stands for the class."""
    images = tf.random.stateless_uniform((count, SIZE, SIZE, 3), seed=(seed, 1))
    labels = tf.random.stateless_uniform((count,), seed=(seed, 2), maxval=CLASSES, dtype=tf.int32)
    return tf.data.Dataset.from_tensor_slices((images, labels))


def brighten(image, label):
    """Put a row of light where the label says."""
    row = tf.one_hot(label * 3, SIZE)[:, None, None]
    return tf.clip_by_value(image + row, 0.0, 1.0), label


def make_model():
    """Return a small functional convolutional network."""
    inputs = keras.Input((SIZE, SIZE, 3))
    x = layers.Conv2D(24, 3, activation="relu", padding="same")(inputs)
    x = layers.MaxPooling2D()(x)
    x = layers.Conv2D(48, 3, activation="relu", padding="same")(x)
    x = layers.GlobalMaxPooling2D()(x)
    outputs = layers.Dense(CLASSES, activation="softmax")(x)
    return keras.Model(inputs, outputs, name="squares")


class EpochPrinter(keras.callbacks.Callback):
    """Prints one line an epoch."""

    def on_epoch_end(self, epoch, logs=None):
        """Print the losses."""
        shown = "  ".join(f"{name} {value:.4f}" for name, value in sorted(logs.items()))
        print(f"epoch {epoch + 1}: {shown}")


keras.utils.set_random_seed(1)
autotune = tf.data.AUTOTUNE
train = make_dataset(64 * BATCH, seed=3).map(brighten, num_parallel_calls=autotune)
train = train.cache().shuffle(1024, seed=5).batch(BATCH).prefetch(autotune)
val = make_dataset(8 * BATCH, seed=4).map(brighten).batch(BATCH)

model = make_model()
model.compile(
    optimizer=keras.optimizers.Adam(2e-3),
    loss="sparse_categorical_crossentropy",
    metrics=["accuracy"],
)
callbacks = [
    EpochPrinter(),
    keras.callbacks.ReduceLROnPlateau(patience=2),
    keras.callbacks.LambdaCallback(on_train_batch_begin=lambda batch, logs: tick()),
]
model.fit(train, validation_data=val, epochs=EPOCHS, callbacks=callbacks, verbose=0)
