import phase_timer
import numpy as np
import tensorflow as tf
from tensorflow.keras.layers import Input, Conv2D, MaxPooling2D, UpSampling2D, concatenate
from tensorflow.keras.models import Model

H = W = 48
NUM_CLASSES = 3


def scenes(n, seed):
    rng = np.random.default_rng(seed)
    yy, xx = np.mgrid[:H, :W]
    a, b = rng.uniform(-1, 1, (2, n, 1, 1))
    c = rng.uniform(5, 12, (n, 1, 1))
    d = np.abs((yy - H / 2) - a * (xx - W / 2) - 10 * b)
    mask = np.where(d < c / 2, 2, np.where(d < c, 1, 0))
    img = np.stack([mask * 0.3, d / 60, np.ones_like(d) * .5], -1) + rng.normal(0, .25, (n, H, W, 3))
    return img.astype("float32"), mask.astype("int32")


def unet():
    i = Input((H, W, 3))
    c1 = Conv2D(8, 3, padding="same", activation="relu")(i)
    c2 = Conv2D(16, 3, padding="same", activation="relu")(MaxPooling2D()(c1))
    c3 = Conv2D(32, 3, padding="same", activation="relu")(MaxPooling2D()(c2))
    u2 = Conv2D(16, 3, padding="same", activation="relu")(concatenate([UpSampling2D()(c3), c2]))
    u1 = Conv2D(8, 3, padding="same", activation="relu")(concatenate([UpSampling2D()(u2), c1]))
    m = Model(i, Conv2D(NUM_CLASSES, 1, activation="softmax")(u1))
    m.compile("adam", "sparse_categorical_crossentropy")
    return m


def mean_iou(true, pred):
    inter = [0] * NUM_CLASSES
    union = [0] * NUM_CLASSES
    for t_img, p_img in zip(true, pred):
        for i in range(t_img.shape[0]):
            for j in range(t_img.shape[1]):
                t = t_img[i, j]
                p = np.argmax(p_img[i, j])
                if t == p:
                    inter[t] += 1
                    union[t] += 1
                else:
                    union[t] += 1
                    union[p] += 1
    return [inter[c] / union[c] for c in range(NUM_CLASSES)]


if __name__ == "__main__":
    phase_timer._T('preparing')
    x, y = scenes(700, 0)
    xt, yt = scenes(3000, 1)
    phase_timer._T('building')
    model = unet()
    phase_timer._T('other')
    model.fit(x, y, batch_size=16, epochs=4, verbose=0)
    pred = model.predict(xt, batch_size=64, verbose=0)
    phase_timer._T('evaluation')
    print("IoU per class:", ["%.3f" % float(v) for v in mean_iou(yt, pred)])
    phase_timer._T('other')
