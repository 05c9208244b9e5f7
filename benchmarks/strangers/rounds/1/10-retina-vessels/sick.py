"""Retinal vessel segmentation with a small U-Net."""
import keras
import numpy as np
from keras import layers

rng = np.random.default_rng(0)
SIZE = 64
LEVELS = np.linspace(0.05, 0.95, 19).round(2).tolist()
images = rng.random((280, SIZE, SIZE, 3), dtype="float32")
masks = (images.mean(-1, keepdims=True) > 0.55).astype("float32")
val_images, val_masks = images[:16], masks[:16]


def conv_block(x, filters):
    x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
    return layers.Conv2D(filters, 3, padding="same", activation="relu")(x)


def unet():
    inputs = layers.Input((SIZE, SIZE, 3))
    c1 = conv_block(inputs, 8)
    c2 = conv_block(layers.MaxPooling2D()(c1), 16)
    c3 = conv_block(layers.MaxPooling2D()(c2), 32)
    u2 = layers.Concatenate()([layers.UpSampling2D()(c3), c2])
    c4 = conv_block(u2, 16)
    u1 = layers.Concatenate()([layers.UpSampling2D()(c4), c1])
    c5 = conv_block(u1, 8)
    return keras.Model(inputs, layers.Conv2D(1, 1, activation="sigmoid")(c5))


def dice_loss(y_true, y_pred):
    inter = keras.ops.sum(y_true * y_pred, axis=(1, 2, 3))
    total = keras.ops.sum(y_true + y_pred, axis=(1, 2, 3))
    return 1 - (2 * inter + 1) / (total + 1)


model = unet()
model.compile(
    optimizer=keras.optimizers.Adam(1e-3),
    loss=dice_loss,
    metrics=[
        "binary_accuracy",
        keras.metrics.AUC(curve="PR", name="pr_auc"),
        keras.metrics.PrecisionAtRecall(0.8, name="p_at_r80"),
        keras.metrics.Precision(thresholds=LEVELS, name="precision"),
        keras.metrics.Recall(thresholds=LEVELS, name="recall"),
    ],
)
model.fit(images, masks, batch_size=8, epochs=2, verbose=2)
