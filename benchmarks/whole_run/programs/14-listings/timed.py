import phase_timer
import os, sys
import numpy as np, pandas as pd
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf
phase_timer._T('preparing')

n = 500_000
r = np.random.RandomState(0)
flats = pd.DataFrame(dict(
    sqm=r.uniform(20, 180, n), rooms=r.randint(1, 7, n), floor=r.randint(0, 12, n),
    lift=r.rand(n) < .4, year=r.randint(1890, 2024, n),
    district=r.choice(["nord", "sued", "ost", "west", "mitte"], n),
    listed=pd.Timestamp("2022-01-01") + pd.to_timedelta(r.randint(0, 700, n), unit="D")))

LEVEL = {"nord": 1.0, "sued": 1.2, "ost": .8, "west": 1.1, "mitte": 1.7}


def age_class(row):
    age = row.listed.year - row.year
    if age < 5:
        return 0
    elif age < 40:
        return 1
    elif age < 80:
        return 2
    return 3


def effort(row):
    if row["lift"]:
        return 0.0
    return max(row["floor"] - 1, 0) * .5


flats["age_class"] = flats.apply(age_class, axis=1)
flats["effort"] = flats.apply(effort, axis=1)
flats["room_size"] = flats.apply(lambda row: row["sqm"] / row["rooms"], axis=1)
flats["level"] = flats.apply(lambda row: LEVEL[row["district"]], axis=1)

cols = ["sqm", "rooms", "age_class", "effort", "room_size", "level"]
price = (flats.sqm * 3000 * flats.level * (1 - .05 * flats.effort) * (1.1 - .1 * flats.age_class)
         + r.normal(0, 1e4, n))
data = ((flats[cols] - flats[cols].mean()) / flats[cols].std()).to_numpy("float32")
target = (price / price.mean()).to_numpy("float32")

ds = tf.data.Dataset.from_tensor_slices((data, target))
train = ds.skip(40_000).shuffle(50_000).batch(512).prefetch(tf.data.AUTOTUNE)
test = ds.take(40_000).batch(2048)

phase_timer._T('building')
model = tf.keras.Sequential([tf.keras.layers.Input((len(cols),)),
                             tf.keras.layers.Dense(64, "relu"), tf.keras.layers.Dense(64, "relu"),
                             tf.keras.layers.Dense(1)])
model.compile("adam", "mae")
phase_timer._T('other')
model.fit(train, validation_data=test, epochs=3, verbose=2)
