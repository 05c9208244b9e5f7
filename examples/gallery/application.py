"""Trains a model of keras.applications as it comes, with random weights on random images.

tfdoctor try examples/gallery/application.py MobileNetV2 96
"""

import sys

import keras
import numpy as np

NAME, SIZE, BATCH, STEPS = sys.argv[1], int(sys.argv[2]), 8, 32

keras.utils.set_random_seed(1)
images = np.random.default_rng(1).random((BATCH * STEPS, SIZE, SIZE, 3), dtype=np.float32)
labels = np.random.default_rng(2).integers(0, 1000, BATCH * STEPS)

model = getattr(keras.applications, NAME)(weights=None, input_shape=(SIZE, SIZE, 3))
model.compile("adam", "sparse_categorical_crossentropy")
model.fit(images, labels, batch_size=BATCH, epochs=8, verbose=2)
