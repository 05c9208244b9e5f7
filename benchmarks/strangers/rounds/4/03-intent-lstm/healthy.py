"""Train the intent classifier behind the support chatbot."""
import dataclasses

import numpy as np
import tensorflow as tf
import keras

keras.utils.set_random_seed(13)

INTENTS = {
    "greeting": ["hello there", "hi", "good morning", "hey how are you"],
    "goodbye": ["bye", "see you later", "thanks bye", "talk to you tomorrow"],
    "order_status": ["where is my order {n}", "has order {n} shipped yet",
                     "i want to know when my parcel {n} will arrive"],
    "refund": ["i want my money back for order {n}", "refund order {n} please",
               "how long does a refund take"],
    "cancel": ["please cancel order {n}", "i do not want order {n} any more cancel it"],
    "opening_hours": ["when are you open", "are you open on {day}", "opening hours on {day}"],
    "agent": ["let me talk to a human", "can i speak with an agent on {day} please"],
    "change_address": ["i moved please send order {n} to my new address",
                       "change the delivery address of order {n} before {day}"],
}
FILLERS = ["please", "um", "so", "well", "actually", "quickly", "again", "today", "sorry"]
DAYS = ["monday", "tuesday", "friday", "sunday"]


@dataclasses.dataclass
class Config:
    vocab_size: int = 600
    max_len: int = 20
    embed_dim: int = 64
    units: int = 64
    batch_size: int = 64
    epochs: int = 8
    examples: int = 5120
    learning_rate: float = 2e-3


class UtteranceCorpus:
    def __init__(self, size, seed=0):
        rng = np.random.default_rng(seed)
        names = list(INTENTS)
        self.texts, self.labels = [], []
        for _ in range(size):
            label = int(rng.integers(len(names)))
            patterns = INTENTS[names[label]]
            text = patterns[rng.integers(len(patterns))]
            text = text.format(n=rng.integers(100, 500), day=DAYS[rng.integers(len(DAYS))])
            words = text.split()
            for _ in range(rng.integers(0, 4)):
                words.insert(rng.integers(0, len(words) + 1),
                             FILLERS[rng.integers(len(FILLERS))])
            self.texts.append(" ".join(words))
            self.labels.append(label)


class Tokenizer:
    def __init__(self, config):
        self.config = config
        self.index = {}

    def fit(self, texts):
        counts = {}
        for text in texts:
            for word in text.split():
                counts[word] = counts.get(word, 0) + 1
        words = sorted(counts, key=counts.get, reverse=True)[: self.config.vocab_size - 2]
        self.index = {w: i + 2 for i, w in enumerate(words)}

    def encode(self, texts):
        sequences = [[self.index.get(w, 1) for w in text.split()] for text in texts]
        return keras.utils.pad_sequences(sequences, maxlen=self.config.max_len, padding="post",
                                         truncating="post")


class IntentClassifier(keras.Model):
    def __init__(self, config, n_intents):
        super().__init__()
        self.embed = keras.layers.Embedding(config.vocab_size, config.embed_dim, mask_zero=True)
        self.drop = keras.layers.SpatialDropout1D(0.1)
        self.encoder = keras.layers.LSTM(config.units)
        self.hidden = keras.layers.Dense(64, activation="relu")
        self.head = keras.layers.Dense(n_intents)

    def call(self, tokens, training=False):
        x = self.embed(tokens)
        x = self.drop(x, training=training)
        x = self.encoder(x, mask=self.embed.compute_mask(tokens), training=training)
        return self.head(self.hidden(x))


def main():
    config = Config()
    corpus = UtteranceCorpus(config.examples)
    tokenizer = Tokenizer(config)
    tokenizer.fit(corpus.texts)
    x = tokenizer.encode(corpus.texts)
    y = np.array(corpus.labels)
    split = int(0.9 * len(x))

    model = IntentClassifier(config, len(INTENTS))
    model.compile(
        optimizer=keras.optimizers.Adam(config.learning_rate, clipnorm=1.0),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    model.fit(x[:split], y[:split], batch_size=config.batch_size, epochs=config.epochs,
              validation_data=(x[split:], y[split:]), verbose=2)

    for text in ("where is my order 123", "can i talk to a human on friday"):
        logits = model(tokenizer.encode([text]))
        print(text, "->", list(INTENTS)[int(tf.argmax(logits[0]))])


if __name__ == "__main__":
    main()
