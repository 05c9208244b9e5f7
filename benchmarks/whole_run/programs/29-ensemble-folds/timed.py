import phase_timer
import numpy as np
from tensorflow import keras

K, REPEATS = 5, 5


def dataset():
    rng = np.random.default_rng(6)
    x = rng.normal(size=(2000, 800)).astype("float32")
    y = np.tanh(x[:, :30] @ rng.normal(size=30) / 3) + 0.1 * rng.normal(size=2000)
    return x, y.astype("float32")


def wide_model(dim):
    model = keras.Sequential([
        keras.Input((dim,)),
        keras.layers.Dense(1500, activation="relu"),
        keras.layers.Dropout(0.5),
        keras.layers.Dense(1000, activation="relu"),
        keras.layers.Dense(1),
    ])
    model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="mse", metrics=["mae"])
    return model


phase_timer._T('preparing')
x, y = dataset()
histories = []
for rep in range(REPEATS):
    order = np.random.default_rng(rep).permutation(len(x))
    for k, test in enumerate(np.array_split(order, K)):
        train = np.setdiff1d(order, test)
        phase_timer._T('building')
        model = wide_model(x.shape[1])
        phase_timer._T('other')
        history = model.fit(x[train], y[train], validation_data=(x[test], y[test]),
                            batch_size=200, epochs=2, verbose=0)
        histories.append(history)
        print("repeat", rep, "fold", k, "val mae %.4f" % history.history["val_mae"][-1])
print("mean val mae %.4f" % np.mean([h.history["val_mae"][-1] for h in histories]))
