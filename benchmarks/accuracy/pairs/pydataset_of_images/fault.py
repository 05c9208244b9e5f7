"""An image user: a `PyDataset` that standardizes and pads image by image."""

import keras
import numpy as np

from stopwatch import tick

keras.utils.set_random_seed(7)
IMAGES = np.random.default_rng(7).integers(0, 255, (2048, 56, 56, 3), dtype=np.uint8)
LABELS = np.arange(len(IMAGES)) % 5


class Images(keras.utils.PyDataset):
    """Batches of 32 images."""

    def __len__(self):
        """Return how many batches there are."""
        return len(IMAGES) // 32

    def __getitem__(self, index):
        """Return a batch."""
        batch = []
        for image in IMAGES[32 * index : 32 * index + 32]:
            pixels = image.astype("float32")
            pixels = (pixels - pixels.mean()) / pixels.std()
            batch.append(np.pad(pixels, ((4, 4), (4, 4), (0, 0))))
        return np.array(batch), LABELS[32 * index : 32 * index + 32]


dataset = Images()

model = keras.Sequential(
    [
        keras.Input((64, 64, 3)),
        keras.layers.AveragePooling2D(8),
        keras.layers.Flatten(),
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dense(5),
    ]
)
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
watch = keras.callbacks.LambdaCallback(on_train_batch_begin=lambda batch, logs: tick())
model.fit(dataset, epochs=3, verbose=2, callbacks=[watch])
