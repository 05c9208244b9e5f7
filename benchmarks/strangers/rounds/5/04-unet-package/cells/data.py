"""Synthetic nuclei with their masks, and the augmentation."""
import os

os.environ.setdefault("NO_ALBUMENTATIONS_UPDATE", "1")

import albumentations as A
import cv2
import numpy as np


def nuclei(n, size, rng):
    images = np.empty((n, size, size, 1), "float32")
    masks = np.zeros((n, size, size), "uint8")
    for i in range(n):
        for _ in range(int(rng.integers(4, 12))):
            center = tuple(int(v) for v in rng.integers(6, size - 6, 2))
            axes = tuple(int(v) for v in rng.integers(4, 11, 2))
            cv2.ellipse(masks[i], center, axes, float(rng.uniform(0, 180)), 0, 360, 1, -1)
        img = masks[i] * rng.uniform(0.5, 1.0) + rng.normal(0, 0.25, (size, size))
        images[i, ..., 0] = cv2.GaussianBlur(img.astype("float32"), (5, 5), 1.0)
    return images, masks


def augmenter():
    return A.Compose([A.HorizontalFlip(p=0.5), A.VerticalFlip(p=0.5), A.RandomRotate90(p=0.5)])
