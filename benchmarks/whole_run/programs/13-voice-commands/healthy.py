import math
import numpy as np
import tensorflow as tf
from tensorflow import keras

RATE, LEN, FRAME, HOP = 4000, 4000, 256, 64
CLASSES = 6


def make_clips(n, seed):
    rng = np.random.default_rng(seed)
    t = np.arange(LEN) / RATE
    y = rng.integers(0, CLASSES, n)
    f0 = 200 + 150 * y
    clips = np.sin(2 * np.pi * f0[:, None] * t * (1 + 0.2 * t)) + rng.normal(0, 1.0, (n, LEN))
    return clips.astype("float32"), y


def spectrograms(clips):
    spec = tf.signal.stft(clips, FRAME, HOP, fft_length=FRAME)
    return tf.math.log(tf.abs(spec) + 1e-3)[..., None]


train_clips, train_y = make_clips(2400, 0)
val_clips, val_y = make_clips(400, 1)
train = (tf.data.Dataset.from_tensor_slices((train_clips, train_y)).batch(32)
         .map(lambda c, y: (spectrograms(c), y)).cache().shuffle(100).prefetch(1))
val = (tf.data.Dataset.from_tensor_slices((val_clips, val_y)).batch(32)
       .map(lambda c, y: (spectrograms(c), y)).cache())
frames = (LEN - FRAME) // HOP + 1

model = keras.Sequential([
    keras.Input((frames, FRAME // 2 + 1, 1)),
    keras.layers.Conv2D(8, 5, strides=3, activation="relu"),
    keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
    keras.layers.GlobalAveragePooling2D(),
    keras.layers.Dense(CLASSES, activation="softmax"),
])
model.compile(optimizer=keras.optimizers.Adam(3e-3), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
h = model.fit(train, validation_data=val, epochs=35, verbose=0)
print(h.history["val_accuracy"])
