"""Single-shot detector for cells in microscope images."""
import keras
import numpy as np
from keras import layers

SIZE, GRID, BATCH = 64, 8, 16
rng = np.random.default_rng(0)

centres = (np.stack(np.meshgrid(range(GRID), range(GRID)), -1).reshape(-1, 2) + 0.5) * SIZE / GRID
anchors = np.concatenate([np.hstack([centres - s / 2, centres + s / 2]) for s in (10, 18)]).astype("float32")


def iou_matrix(a, b):
    low = np.maximum(a[:, None, :2], b[None, :, :2])
    high = np.minimum(a[:, None, 2:], b[None, :, 2:])
    inter = np.prod(np.clip(high - low, 0, None), axis=-1)
    area_a, area_b = np.prod(a[:, 2:] - a[:, :2], -1), np.prod(b[:, 2:] - b[:, :2], -1)
    return inter / (area_a[:, None] + area_b[None] - inter)


def encode(boxes):
    overlap = iou_matrix(anchors, boxes)
    best = overlap.argmax(1)
    positive = overlap.max(1) > 0.4
    target = np.zeros((len(anchors), 5), "float32")
    target[positive, 0] = 1.0
    target[positive, 1:] = (boxes[best[positive]] - anchors[positive]) / 16.0
    return target


class Cells(keras.utils.PyDataset):
    def __init__(self, n):
        super().__init__()
        self.images = rng.random((n, SIZE, SIZE, 1), dtype="float32")
        corner = rng.uniform(0, SIZE - 20, (n, 6, 2))
        self.boxes = np.concatenate([corner, corner + rng.uniform(8, 20, (n, 6, 2))], -1).astype("float32")

    def __len__(self):
        return len(self.images) // BATCH

    def __getitem__(self, i):
        rows = range(i * BATCH, (i + 1) * BATCH)
        targets = np.stack([encode(self.boxes[r]) for r in rows])
        return self.images[i * BATCH:(i + 1) * BATCH], targets


def detection_loss(y, p):
    obj = keras.ops.binary_crossentropy(y[..., 0], p[..., 0], from_logits=True)
    box = keras.ops.sum(keras.ops.abs(y[..., 1:] - p[..., 1:]), -1) * y[..., 0]
    return keras.ops.mean(obj + box)


inputs = keras.Input((SIZE, SIZE, 1))
x = inputs
for width in (16, 32, 64):
    x = layers.Conv2D(width, 3, padding="same", activation="relu")(x)
    x = layers.MaxPooling2D()(x)
x = layers.Conv2D(2 * 5, 1)(x)
x = layers.Reshape((GRID * GRID, 2, 5))(x)
x = layers.Permute((2, 1, 3))(x)
outputs = layers.Reshape((2 * GRID * GRID, 5))(x)
model = keras.Model(inputs, outputs)
model.compile("adam", detection_loss)
model.fit(Cells(640), epochs=2, verbose=2)
