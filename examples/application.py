"""Trains a model of keras.applications as it comes, with random weights on random images.

tfdoctor profile examples/application.py MobileNetV2
"""

import sys

import keras
import numpy as np

NAME, BATCH, STEPS = sys.argv[1], 8, 32

keras.utils.set_random_seed(1)
images = np.random.default_rng(1).random((BATCH * STEPS, 224, 224, 3), dtype=np.float32)
labels = np.random.default_rng(2).integers(0, 1000, BATCH * STEPS)

model = getattr(keras.applications, NAME)(weights=None)
model.compile("adam", "sparse_categorical_crossentropy")
model.fit(images, labels, batch_size=BATCH, verbose=2)
