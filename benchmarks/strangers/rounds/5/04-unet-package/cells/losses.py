"""Loss with a weight on the borders between nuclei (Ronneberger et al.)."""
import numpy as np
import tensorflow as tf
from scipy import ndimage


def border_weights(mask, w0=6.0, sigma=4.0):
    """1 + w0 * exp(-(d1 + d2)^2 / 2 sigma^2) outside of the nuclei."""
    labels, count = ndimage.label(mask)
    dists = np.stack([ndimage.distance_transform_edt(labels != k)
                      for k in range(1, count + 1)]) if count else None
    if count < 2:
        return np.ones(mask.shape, "float32")
    nearest = np.partition(dists, 1, axis=0)[:2]
    w = w0 * np.exp(-(nearest.sum(axis=0) ** 2) / (2 * sigma ** 2))
    return (1.0 + w * (mask == 0)).astype("float32")


def weighted_bce(mask, logits, weights):
    bce = tf.nn.sigmoid_cross_entropy_with_logits(labels=mask, logits=logits)
    return tf.reduce_mean(bce * weights)


def iou(mask, logits):
    pred = logits > 0
    true = mask > 0.5
    inter = np.logical_and(pred, true).sum()
    return inter / max(1, np.logical_or(pred, true).sum())
