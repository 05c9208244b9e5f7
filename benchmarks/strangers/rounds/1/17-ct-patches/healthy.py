"""Lesion segmentation on random patches of CT volumes."""
import os
import tempfile

import keras
import numpy as np
from keras import layers

PATCH, BATCH, VOLUMES, SHAPE = 24, 4, 12, (96, 128, 128)
rng = np.random.default_rng(0)
folder = tempfile.mkdtemp()
for i in range(VOLUMES):
    volume = rng.integers(-1000, 1000, SHAPE, dtype="int16")
    np.save(os.path.join(folder, f"ct_{i:02d}.npy"), volume.astype("float32"))
    np.save(os.path.join(folder, f"seg_{i:02d}.npy"), (volume > 800).astype("uint8"))


def random_patch():
    i = rng.integers(VOLUMES)
    volume = np.load(os.path.join(folder, f"ct_{i:02d}.npy"), mmap_mode="r")
    mask = np.load(os.path.join(folder, f"seg_{i:02d}.npy"), mmap_mode="r")
    z, y, x = (rng.integers(0, s - PATCH) for s in SHAPE)
    window = np.s_[z:z + PATCH, y:y + PATCH, x:x + PATCH]
    image = np.clip(volume[window], -200, 300) / 500.0
    return image[..., None], mask[window][..., None]


def batches():
    while True:
        images, masks = zip(*[random_patch() for _ in range(BATCH)])
        yield np.stack(images).astype("float32"), np.stack(masks).astype("float32")


model = keras.Sequential([
    layers.Input((PATCH, PATCH, PATCH, 1)),
    layers.Conv3D(8, 3, padding="same", activation="relu"),
    layers.Conv3D(16, 3, strides=2, padding="same", activation="relu"),
    layers.Conv3D(16, 3, padding="same", activation="relu"),
    layers.UpSampling3D(),
    layers.Conv3D(1, 1, activation="sigmoid"),
])
model.compile("adam", "binary_crossentropy")
data = batches()
for step in range(120):
    image, mask = next(data)
    loss = model.train_on_batch(image, mask)
    if step % 40 == 0:
        print("step", step, "loss", float(loss))
