"""Train a U-Net on nuclei with border weights (package `cells` beside this file)."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf
import keras

from cells.data import augmenter, nuclei
from cells.losses import border_weights, iou, weighted_bce
from cells.model import unet

SIZE, BATCH, N = 80, 8, 96
EPOCHS = 6


class Trainer:
    def __init__(self, model, learning_rate=1e-3):
        self.model = model
        self.optimizer = keras.optimizers.Adam(learning_rate)
        self.augment = augmenter()
        self.history = []

    @tf.function
    def step(self, images, masks, weights):
        with tf.GradientTape() as tape:
            logits = self.model(images, training=True)[..., 0]
            loss = weighted_bce(masks, logits, weights)
        grads = tape.gradient(loss, self.model.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.model.trainable_variables))
        return loss, logits

    def batches(self, images, masks, rng):
        order = rng.permutation(len(images))
        for at in range(0, len(order) - BATCH + 1, BATCH):
            xs, ms, ws = [], [], []
            for i in order[at:at + BATCH]:
                out = self.augment(image=images[i], mask=masks[i])
                xs.append(out["image"])
                ms.append(out["mask"].astype("float32"))
                ws.append(border_weights(out["mask"]))
            yield np.stack(xs), np.stack(ms), np.stack(ws)

    def fit(self, images, masks, epochs, rng):
        for epoch in range(epochs):
            losses, ious = [], []
            for x, m, w in self.batches(images, masks, rng):
                loss, logits = self.step(x, m, w)
                losses.append(float(loss))
                ious.append(iou(m, self.model.predict(x, verbose=0)[..., 0]))
            self.history.append((np.mean(losses), np.mean(ious)))
            print(f"epoch {epoch} loss {np.mean(losses):.4f} IoU {np.mean(ious):.3f}")


def main():
    keras.utils.set_random_seed(4)
    rng = np.random.default_rng(4)
    images, masks = nuclei(N, SIZE, rng)
    trainer = Trainer(unet(SIZE))
    trainer.fit(images, masks, EPOCHS, rng)


if __name__ == "__main__":
    main()
