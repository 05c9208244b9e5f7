# Homework 4: a small AlexNet for CIFAR-sized pictures
import numpy as np
import tensorflow as tf
from tensorflow.keras import layers, models

np.random.seed(1)
x_train = np.random.rand(960, 32, 32, 3).astype("float32")
y_train = np.random.randint(0, 10, 960)


def norm():
    return layers.Lambda(lambda x: tf.nn.local_response_normalization(x, depth_radius=2, bias=2.0, alpha=1e-4, beta=0.75))


model = models.Sequential()
model.add(layers.Input((32, 32, 3)))
model.add(layers.Conv2D(24, 5, strides=1, padding="same", activation="relu"))
model.add(norm())
model.add(layers.MaxPooling2D(3, strides=2))
model.add(layers.Conv2D(48, 5, padding="same", activation="relu"))
model.add(norm())
model.add(layers.MaxPooling2D(3, strides=2))
model.add(layers.Conv2D(48, 3, padding="same", activation="relu"))
model.add(layers.MaxPooling2D(3, strides=2))
model.add(layers.Flatten())
model.add(layers.Dense(128, activation="relu"))
model.add(layers.Dropout(0.5))
model.add(layers.Dense(10, activation="softmax"))

model.compile(optimizer=tf.keras.optimizers.SGD(0.01, momentum=0.9), loss="sparse_categorical_crossentropy")
model.fit(x_train, y_train, batch_size=16, epochs=2, verbose=2)
