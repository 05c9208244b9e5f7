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


class Clips(keras.utils.PyDataset):
    def __init__(self, clips, labels, batch=32, **kw):
        super().__init__(**kw)
        self.clips, self.labels, self.batch = clips, labels, batch
        self.window = np.hanning(FRAME)

    def __len__(self):
        return math.ceil(len(self.clips) / self.batch)

    def spectrogram(self, clip):
        rows = []
        for start in range(0, LEN - FRAME + 1, HOP):
            frame = clip[start:start + FRAME] * self.window
            rows.append(np.log(np.abs(np.fft.rfft(frame)) + 1e-3))
        return np.array(rows)[..., None]

    def __getitem__(self, i):
        sl = slice(i * self.batch, (i + 1) * self.batch)
        return np.array([self.spectrogram(c) for c in self.clips[sl]], "float32"), self.labels[sl]


train_clips, train_y = make_clips(2400, 0)
val_clips, val_y = make_clips(400, 1)
train = Clips(train_clips, train_y)
val = Clips(val_clips, val_y)
frames = (LEN - FRAME) // HOP + 1

model = keras.Sequential([
    keras.Input((frames, FRAME // 2 + 1, 1)),
    keras.layers.Conv2D(8, 5, strides=3, activation="relu"),
    keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
    keras.layers.GlobalAveragePooling2D(),
    keras.layers.Dense(CLASSES, activation="softmax"),
])
model.compile(optimizer=keras.optimizers.Adam(3e-3), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
h = model.fit(train, validation_data=val, epochs=10, verbose=0)
print(h.history["val_accuracy"])
