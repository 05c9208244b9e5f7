# Crop type segmentation from Sentinel-2 style patches (10 bands, 7 crop classes)
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

keras.utils.set_random_seed(7)

CROPS = ["background", "wheat", "maize", "rapeseed", "sugar_beet", "potato", "meadow"]
N_CLASSES = len(CROPS)
SIZE = 64
BANDS = 10
BATCH = 8
N_TRAIN = 240
N_VAL = 32
EPOCHS = 8


def synthesize(n, seed):
    """Fields are random rectangles; each crop has its own spectrum plus noise."""
    rng = np.random.default_rng(seed)
    spectra = np.random.default_rng(0).uniform(0.05, 0.6, (N_CLASSES, BANDS))
    labels = np.zeros((n, SIZE, SIZE), "uint8")
    for i in range(n):
        for _ in range(9):
            y, x = rng.integers(0, SIZE - 12, 2)
            h, w = rng.integers(10, 30, 2)
            labels[i, y:y + h, x:x + w] = rng.integers(0, N_CLASSES)
    images = spectra[labels] + rng.normal(0, 0.1, (n, SIZE, SIZE, BANDS))
    return images.astype("float32"), labels


def gaussian_kernel(size=41, sigma=7.0):
    x = np.arange(size) - size // 2
    g = np.exp(-(x[:, None] ** 2 + x[None, :] ** 2) / (2 * sigma ** 2))
    return np.tile((g / g.sum())[:, :, None, None], (1, 1, N_CLASSES, 1)).astype("float32")


KERNEL = gaussian_kernel()


def soften(image, label):
    """Field borders are uncertain by some pixels: blur the one-hot labels of each class."""
    onehot = tf.one_hot(label, N_CLASSES)
    padded = tf.pad(onehot, [[20, 20], [20, 20], [0, 0]], mode="SYMMETRIC")
    soft = tf.nn.depthwise_conv2d(padded[None], KERNEL, [1, 1, 1, 1], "VALID")[0]
    return image, 0.5 * onehot + 0.5 * soft


def augment(image, label):
    both = tf.concat([image, label], -1)
    both = tf.image.random_flip_left_right(both)
    both = tf.image.random_flip_up_down(both)
    return both[..., :BANDS], both[..., BANDS:]


def make_dataset(images, labels, training):
    ds = tf.data.Dataset.from_tensor_slices((images, labels))
    ds = ds.map(soften, num_parallel_calls=tf.data.AUTOTUNE).cache()
    if training:
        ds = ds.shuffle(len(images), seed=1)
        ds = ds.map(augment, num_parallel_calls=tf.data.AUTOTUNE)
    return ds.batch(BATCH, drop_remainder=True).prefetch(tf.data.AUTOTUNE)


def conv_block(x, filters):
    for _ in range(2):
        x = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
        x = layers.BatchNormalization()(x)
        x = layers.ReLU()(x)
    return x


def unet():
    inputs = keras.Input((SIZE, SIZE, BANDS))
    skips = []
    x = inputs
    for f in (8, 16, 32):
        x = conv_block(x, f)
        skips.append(x)
        x = layers.MaxPooling2D()(x)
    x = conv_block(x, 48)
    for f, skip in zip((32, 16, 8), reversed(skips)):
        x = layers.Conv2DTranspose(f, 2, strides=2, padding="same")(x)
        x = layers.Concatenate()([x, skip])
        x = conv_block(x, f)
    outputs = layers.Conv2D(N_CLASSES, 1)(x)
    return keras.Model(inputs, outputs, name="crop_unet")


def main():
    train = make_dataset(*synthesize(N_TRAIN, 1), training=True)
    val = make_dataset(*synthesize(N_VAL, 2), training=False)
    model = unet()
    model.compile(
        optimizer=keras.optimizers.AdamW(2e-3, weight_decay=1e-4),
        loss=keras.losses.CategoricalCrossentropy(from_logits=True),
        metrics=[keras.metrics.OneHotMeanIoU(N_CLASSES, name="miou")],
    )
    history = model.fit(train, validation_data=val, epochs=EPOCHS, verbose=2)
    print("best val mIoU", max(history.history["val_miou"]))


if __name__ == "__main__":
    main()
