"""`from tensorflow.keras import …`, as written for Keras 2; runs under Keras 3 as well."""

import numpy as np
from tensorflow.keras import backend as K  # noqa: N812 - its usual name
from tensorflow.keras.callbacks import Callback, LearningRateScheduler
from tensorflow.keras.layers import Conv2D, Dense, Dropout, Flatten, MaxPooling2D
from tensorflow.keras.models import Sequential
from tensorflow.keras.utils import set_random_seed, to_categorical

from stopwatch import tick

batch_size = 32
num_classes = 10
epochs = 3
img_rows, img_cols = 28, 28

set_random_seed(99)
rng = np.random.default_rng(99)
x_train = rng.integers(0, 255, (2048, img_rows, img_cols))
y_train = x_train[:, :10, :10].sum(axis=(1, 2)) % num_classes
x_test, y_test = x_train[:256], y_train[:256]

if K.image_data_format() == "channels_first":
    input_shape = (1, img_rows, img_cols)
else:
    input_shape = (img_rows, img_cols, 1)
x_train = x_train.reshape(len(x_train), *input_shape).astype("float32") / 255
x_test = x_test.reshape(len(x_test), *input_shape).astype("float32") / 255
y_train = to_categorical(y_train, num_classes)
y_test = to_categorical(y_test, num_classes)
print("x_train shape:", x_train.shape)
print(x_train.shape[0], "train samples")

model = Sequential()
model.add(Conv2D(24, kernel_size=(3, 3), activation="relu", input_shape=input_shape))
model.add(Conv2D(32, (3, 3), activation="relu"))
model.add(MaxPooling2D(pool_size=(2, 2)))
model.add(Dropout(0.25))
model.add(Flatten())
model.add(Dense(64, activation="relu"))
model.add(Dense(num_classes, activation="softmax"))
model.compile(loss="categorical_crossentropy", optimizer="adadelta", metrics=["accuracy"])


class Stopwatch(Callback):
    """Notes when a batch begins."""

    def on_train_batch_begin(self, batch, logs=None):
        """Note it."""
        tick()


history = model.fit(
    x_train,
    y_train,
    batch_size=batch_size,
    epochs=epochs,
    verbose=0,
    validation_data=(x_test, y_test),
    callbacks=[LearningRateScheduler(lambda epoch: 1.0 / (epoch + 1)), Stopwatch()],
)
for epoch, loss in enumerate(history.history["loss"]):
    print(f"Epoch {epoch + 1}/{epochs} loss: {loss:.4f}")
score = model.evaluate(x_test, y_test, verbose=0)
print(f"Test loss: {score[0]:.4f}")
