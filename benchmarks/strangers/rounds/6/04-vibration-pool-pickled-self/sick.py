"""Bearing-fault classification from vibration recordings: windows are cut, augmented and turned into
log-spectrograms in worker processes, a small Conv1D net is trained with train_on_batch."""
import multiprocessing as mp
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import numpy as np

SEED = 21
RATE = 12_000
N_REC, REC_SECONDS = 24, 16
WIN, HOP, FRAMES = 256, 128, 47          # 0.5 s windows
N_CLASSES = 4
BATCH = 128
STEPS = 240


def synth_recording(label, rng):
    t = np.arange(RATE * REC_SECONDS) / RATE
    shaft = 29 + rng.normal(0, 0.5)
    sig = 0.4 * np.sin(2 * np.pi * shaft * t) + 0.3 * rng.standard_normal(t.size)
    if label:                               # impacts at a class-dependent defect frequency
        defect = shaft * (1.8, 3.6, 5.4)[label - 1]
        phase = (t * defect) % 1.0
        sig += 0.9 * np.exp(-60 * phase) * np.sin(2 * np.pi * 2800 * t)
    return sig.astype("float32")


class VibrationBatches:
    """Holds all recordings; draws batch number i reproducibly."""

    def __init__(self, recordings, labels):
        self.recordings = recordings        # (N_REC, samples) float32
        self.labels = labels
        self.window = np.hanning(WIN).astype("float32")

    def draw(self, rng):
        rec = rng.integers(len(self.recordings))
        start = rng.integers(self.recordings.shape[1] - RATE // 2 - WIN)
        x = self.recordings[rec, start:start + HOP * (FRAMES - 1) + WIN]
        x = x * rng.uniform(0.7, 1.3) + rng.normal(0, 0.02, x.size).astype("float32")
        frames = np.lib.stride_tricks.sliding_window_view(x, WIN)[::HOP] * self.window
        spec = np.log1p(np.abs(np.fft.rfft(frames, axis=1)))[:, 1:]
        return spec.astype("float32"), self.labels[rec]

    def make_batch(self, i):
        rng = np.random.default_rng((SEED, i))
        xs, ys = zip(*(self.draw(rng) for _ in range(BATCH)))
        return np.stack(xs), np.array(ys, "int32")


def build_model():
    import keras
    from keras import layers

    keras.utils.set_random_seed(SEED)
    model = keras.Sequential([
        keras.Input((FRAMES, WIN // 2)),
        layers.Conv1D(64, 5, padding="same", activation="relu"),
        layers.BatchNormalization(),
        layers.MaxPooling1D(2),
        layers.Conv1D(96, 5, padding="same", activation="relu"),
        layers.BatchNormalization(),
        layers.GlobalAveragePooling1D(),
        layers.Dropout(0.3),
        layers.Dense(N_CLASSES),
    ])
    model.compile(
        optimizer=keras.optimizers.Adam(1e-3),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    return model


def main():
    rng = np.random.default_rng(SEED)
    labels = np.arange(N_REC) % N_CLASSES
    recordings = np.stack([synth_recording(k, rng) for k in labels])
    batches = VibrationBatches(recordings, labels)

    ctx = mp.get_context("fork")
    pool = ctx.Pool(2)                      # forked before TensorFlow starts its threads
    model = build_model()
    stream = pool.imap(batches.make_batch, range(STEPS))
    for step, (x, y) in enumerate(stream):
        loss, acc = model.train_on_batch(x, y)
        if step % 40 == 39:
            print(f"step {step + 1}: loss {float(loss):.3f} accuracy {float(acc):.3f}", flush=True)
            model.reset_metrics()
    pool.close()
    pool.join()


if __name__ == "__main__":
    main()
