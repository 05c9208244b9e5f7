"""Transfer learning on CIFAR-sized images with a frozen MobileNet."""
import keras
import numpy as np
from keras import layers

TARGET = 160
rng = np.random.default_rng(0)
x_train = rng.integers(0, 255, (560, 32, 32, 3)).astype("uint8")
y_train = rng.integers(0, 10, (560, 1))

base = keras.applications.MobileNet(
    input_shape=(TARGET, TARGET, 3), alpha=0.25, include_top=False, weights=None, pooling="avg"
)
base.trainable = False

inputs = keras.Input((32, 32, 3))
x = layers.Resizing(TARGET, TARGET)(inputs)
x = layers.Rescaling(1 / 127.5, offset=-1)(x)
x = base(x, training=False)
x = layers.Dropout(0.2)(x)
outputs = layers.Dense(10, activation="softmax")(x)
model = keras.Model(inputs, outputs)

model.compile(
    optimizer=keras.optimizers.Adam(1e-3),
    loss="sparse_categorical_crossentropy",
    metrics=["accuracy"],
)
model.fit(x_train, y_train, batch_size=16, epochs=2, verbose=2)
