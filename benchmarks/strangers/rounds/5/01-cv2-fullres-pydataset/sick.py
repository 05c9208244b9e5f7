"""Leaf-disease classifier: phone photos (JPEG, 2 MP) -> 112x112 CNN.

Photos are read with OpenCV in a keras PyDataset with two worker processes.
"""
import os
import shutil
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import cv2
import numpy as np
import keras
from keras import layers

IMG = 112
BATCH = 16
CLASSES = 4
N_PHOTOS = 128
EPOCHS = 8
WORKERS = 2


def make_photos(root, rng):
    """A stand-in for the field campaign: blotchy leaves at 1600x1200."""
    paths, labels = [], []
    for i in range(N_PHOTOS):
        label = int(rng.integers(CLASSES))
        small = rng.integers(0, 255, (30, 40, 3)).astype(np.uint8)
        img = cv2.resize(small, (1600, 1200), interpolation=cv2.INTER_CUBIC)
        img[..., label % 3] = img[..., label % 3] // 2 + 30 * label
        noise = rng.integers(0, 24, (1200, 1600, 1), dtype=np.uint8)
        img = cv2.add(img, np.repeat(noise, 3, axis=2))
        path = os.path.join(root, f"leaf_{i:04d}_{label}.jpg")
        cv2.imwrite(path, img, [cv2.IMWRITE_JPEG_QUALITY, 90])
        paths.append(path)
        labels.append(label)
    return np.array(paths), np.array(labels)


class LeafPhotos(keras.utils.PyDataset):
    def __init__(self, paths, labels, training, **kwargs):
        super().__init__(**kwargs)
        self.paths, self.labels = paths, labels
        self.training = training
        self.order = np.arange(len(paths))

    def __len__(self):
        return len(self.paths) // BATCH

    def on_epoch_end(self):
        if self.training:
            np.random.shuffle(self.order)

    def _load(self, path, rng):
        img = cv2.imread(path, cv2.IMREAD_COLOR)
        img = cv2.cvtColor(img, cv2.COLOR_BGR2RGB)
        img = cv2.resize(img, (IMG + 16, IMG + 16), interpolation=cv2.INTER_AREA)
        if self.training:
            dy, dx = rng.integers(0, 17, 2)
            img = img[dy:dy + IMG, dx:dx + IMG]
            if rng.random() < 0.5:
                img = img[:, ::-1]
        else:
            img = img[8:8 + IMG, 8:8 + IMG]
        return img

    def __getitem__(self, index):
        rng = np.random.default_rng()
        sel = self.order[index * BATCH:(index + 1) * BATCH]
        x = np.stack([self._load(self.paths[i], rng) for i in sel])
        return x, self.labels[sel]


def build_model():
    inputs = keras.Input((IMG, IMG, 3), dtype="uint8")
    x = layers.Rescaling(1 / 127.5, offset=-1.0)(inputs)
    for filters in (16, 32, 64, 96):
        x = layers.Conv2D(filters, 3, strides=2, padding="same", use_bias=False)(x)
        x = layers.BatchNormalization()(x)
        x = layers.ReLU()(x)
    x = layers.GlobalAveragePooling2D()(x)
    x = layers.Dropout(0.2)(x)
    return keras.Model(inputs, layers.Dense(CLASSES)(x))


def main():
    rng = np.random.default_rng(3)
    root = tempfile.mkdtemp(prefix="leaves_")
    try:
        paths, labels = make_photos(root, rng)
        train = LeafPhotos(paths, labels, True, workers=WORKERS,
                           use_multiprocessing=True, max_queue_size=8)
        model = build_model()
        model.compile(
            optimizer=keras.optimizers.Adam(1e-3),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=["accuracy"],
        )
        model.fit(train, epochs=EPOCHS, verbose=2)
    finally:
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
