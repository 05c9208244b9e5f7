"""Road segmentation on aerial tiles: albumentations inside tf.numpy_function, wide U-Net."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("NO_ALBUMENTATIONS_UPDATE", "1")

import albumentations as A
import cv2
import numpy as np
import tensorflow as tf
import keras
from keras import layers

cv2.setNumThreads(0)
TILE, CROP, BATCH, TILES = 128, 96, 8, 96
EPOCHS = 5


def tiles(rng):
    images = np.empty((TILES, TILE, TILE, 3), np.uint8)
    masks = np.zeros((TILES, TILE, TILE, 1), np.uint8)
    for i in range(TILES):
        ground = cv2.resize(rng.integers(40, 150, (12, 12, 3), dtype=np.uint8), (TILE, TILE), interpolation=cv2.INTER_CUBIC)
        mask = np.zeros((TILE, TILE), np.uint8)
        for _ in range(int(rng.integers(2, 5))):
            pts = rng.integers(0, TILE, (4, 2)).astype(np.int32)
            cv2.polylines(mask, [pts.reshape(-1, 1, 2)], False, 1, thickness=int(rng.integers(3, 7)))
        grey = np.full_like(ground, 170)
        images[i] = np.where(mask[..., None] > 0, grey, ground)
        masks[i, ..., 0] = mask
    noise = rng.integers(0, 20, images.shape, dtype=np.uint8)
    return images + noise, masks


AUGMENT = A.Compose([
    A.RandomCrop(CROP, CROP),
    A.D4(p=1.0),
    A.RandomBrightnessContrast(p=0.6),
    A.HueSaturationValue(p=0.3),
    A.GaussNoise(p=0.2),
])


def augment_np(image, mask):
    out = AUGMENT(image=image, mask=mask)
    return out["image"], out["mask"]


def augment(image, mask):
    image, mask = tf.numpy_function(augment_np, (image, mask), (tf.uint8, tf.uint8))
    image = tf.ensure_shape(image, (CROP, CROP, 3))
    mask = tf.ensure_shape(mask, (CROP, CROP, 1))
    return image, mask


def to_float(images, masks):
    return tf.cast(images, tf.float32) / 255.0, tf.cast(masks, tf.float32)


def double_conv(x, filters):
    for _ in range(2):
        x = layers.Conv2D(filters, 3, padding="same", kernel_initializer="he_normal", use_bias=False)(x)
        x = layers.BatchNormalization()(x)
        x = layers.ReLU()(x)
    return x


def unet(widths=(24, 48, 96, 128)):
    inputs = keras.Input((CROP, CROP, 3))
    x, skips = inputs, []
    for w in widths[:-1]:
        x = double_conv(x, w)
        skips.append(x)
        x = layers.MaxPooling2D()(x)
    x = double_conv(x, widths[-1])
    for w, skip in zip(widths[-2::-1], skips[::-1]):
        x = layers.Conv2DTranspose(w, 2, strides=2)(x)
        x = double_conv(layers.Concatenate()([skip, x]), w)
    return keras.Model(inputs, layers.Conv2D(1, 1)(x))


class BceDice(keras.losses.Loss):
    def call(self, y_true, y_pred):
        bce = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(y_true, y_pred))
        p = tf.sigmoid(y_pred)
        dice = (2 * tf.reduce_sum(p * y_true) + 1) / (tf.reduce_sum(p + y_true) + 1)
        return bce + 1 - dice


def main():
    keras.utils.set_random_seed(6)
    images, masks = tiles(np.random.default_rng(6))
    ds = (tf.data.Dataset.from_tensor_slices((images, masks))
          .shuffle(TILES)
          .map(augment, num_parallel_calls=2)
          .batch(BATCH, drop_remainder=True)
          .map(to_float)
          .prefetch(2))
    model = unet()
    model.compile(optimizer=keras.optimizers.Adam(1e-3), loss=BceDice())
    model.fit(ds, epochs=EPOCHS, verbose=2)


if __name__ == "__main__":
    main()
