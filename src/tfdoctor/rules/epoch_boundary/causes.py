"""What takes long between the epochs: its line, its time in the run, and what to do about it."""

from dataclasses import dataclass
from enum import StrEnum

from tfdoctor.facts.run_work.called_work import ONE_BY_ONE, CalledWork
from tfdoctor.facts.run_work.line_groups import LineGroup
from tfdoctor.facts.run_work.run_tables import in_function
from tfdoctor.terms.humanize import location
from tfdoctor.terms.kinds import Phase
from tfdoctor.terms.units import ms
from tfdoctor.terms.verdict import Bound, Location, Recurrence, Remedy, RunEffect

RARELY = 0.1
"""Share of the time that remains where work runs in every tenth epoch."""


class BoundaryWork(StrEnum):
    """What is done between epochs."""

    VALIDATION = "validation"
    OFTEN = "validation, many times in each epoch"
    SMALL_BATCHES = "validation in small batches"
    PREDICTION = "prediction"
    SAVING = "saving"
    DATASET = "a dataset that is built"
    FILLING = "the wait for the first batch"
    COLLECTING = "Python's garbage collection"
    PLOT = "a picture that is drawn"
    PYTHON = "Python, item by item"
    OF_FIT = "Keras' fit itself"
    OTHER = "other work"


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundaryCause:
    """Work between epochs at a line; ``left`` is the share of its time that remains after the change.

    ``calls`` is how often it came; 0 is not counted, but sampled.
    """

    work: BoundaryWork
    at: Location
    phase: Phase
    time_ms: float
    left: float = 0.0
    within: str = ""  # " in load(), called at train.py:7"
    calls: int = 0

    @property
    def saved_ms(self) -> float:
        """What the change saves of the run, in ms."""
        return self.time_ms * (1.0 - self.left)

    @property
    def remedy(self) -> Remedy:
        """The change, at the line."""
        action, code, edit_id = REMEDIES[self.work]
        changes = FEWER if edit_id == RARER else ""
        code = f"# {location(self.at)}{self.within}\n{code}"
        return Remedy(action, code, self.at, edit_id, changes=changes)

    def times(self, epochs: int) -> int:
        """Return in how many epochs it came; in all of them where that was not counted."""
        return min(self.calls, epochs) if self.calls else epochs

    def effect(self, epochs: int, *, same: bool) -> RunEffect:
        """The time of the line in the run, which comes with each epoch if they are the ``same``, of one fit."""
        times = self.times(epochs)
        return RunEffect(
            phase=self.phase,
            of=ms(self.time_ms),
            subject=location(self.at),
            scales=self.left,
            recurs=Recurrence.PER_EPOCH if times == epochs else Recurrence.PER_CALL,
            times=times if self.calls or same else 0,
            bound=Bound.AT_MOST,
        )

    @classmethod
    def of_group(cls, group: LineGroup, at: Location, usual: float, *, fits: bool) -> "BoundaryCause":
        """Return the cause of sampled lines, with the usual share of their time; unknown work may be fit's."""
        other = BoundaryWork.OF_FIT if fits else BoundaryWork.OTHER
        work = OF_WORK.get(group.work, other)
        return cls(
            work=work,
            at=at,
            phase=group.phase,
            time_ms=usual * group.ms,
            left=RARELY if work in {BoundaryWork.PLOT, BoundaryWork.PYTHON, other} else 0.0,
            within=in_function(group),
        )


OF_WORK = {
    CalledWork.DATASET: BoundaryWork.DATASET,
    CalledWork.COLLECTING: BoundaryWork.COLLECTING,
    CalledWork.PLOT: BoundaryWork.PLOT,
    CalledWork.FILES: BoundaryWork.PYTHON,
    CalledWork.TEXTS: BoundaryWork.PYTHON,
    CalledWork.PARSING: BoundaryWork.PYTHON,
    **dict.fromkeys(ONE_BY_ONE, BoundaryWork.PYTHON),
}
"""What sampled work is, between epochs."""

SELDOM_VALIDATION = """\
model.fit(train, validation_data=validation, validation_freq=5, epochs=epochs)"""

BY_STEPS = """\
if step % 1000 == 0:
    model.evaluate(validation, verbose=0)"""

LARGE_BATCHES = """\
model.fit(x, y, validation_data=(x_val, y_val), validation_batch_size=512)  # no gradients: more fits"""

TENTH_EPOCH = """\
if epoch % 10 == 9:
    predictions = model.predict(examples[:64], verbose=0)  # a few examples, every tenth epoch"""

BEST_ONLY = """\
keras.callbacks.ModelCheckpoint(path, save_best_only=True, save_weights_only=True)
# or keras.callbacks.BackupAndRestore(folder, save_freq=5000)"""

BUILT_ONCE = """\
dataset = make_dataset(files).cache().shuffle(1000).batch(batch_size).prefetch(tf.data.AUTOTUNE)
for epoch in range(epochs):  # each pass over the same dataset shuffles anew
    for batch in dataset:
        train_step(batch)"""

SMALL_BUFFER = """\
dataset = tf.data.Dataset.from_tensor_slices(paths).shuffle(len(paths))  # paths, not images
dataset = dataset.map(load, num_parallel_calls=tf.data.AUTOTUNE).shuffle(256).batch(batch_size)
model.fit(dataset.repeat().prefetch(tf.data.AUTOTUNE), steps_per_epoch=steps, epochs=epochs)"""

NO_COLLECTION = """\
# without gc.collect(): Python collects by itself, and TensorFlow's tensors need no collection"""

TENTH_OR_ONCE = """\
if epoch % 10 == 9:
    work(model)  # needs the trained model: in every tenth epoch
# what needs only the data is the same in each epoch: compute it before the loop"""

LESS_OFTEN = "Do this every few epochs, or once before the training if its result stays the same"

LONG_EPOCHS = """\
model.fit(dataset.repeat(10), epochs=epochs // 10)  # as many steps"""

RARER = "rarer-callback"
"""The edit of what a callback does."""

FEWER = "the callback works at every tenth epoch, or every 100th batch"

REMEDIES = {
    BoundaryWork.VALIDATION: ("Validate every few epochs, or on fewer examples", SELDOM_VALIDATION, ""),
    BoundaryWork.OFTEN: ("Validate less often", BY_STEPS, RARER),
    BoundaryWork.SMALL_BATCHES: ("Validate in larger batches", LARGE_BATCHES, ""),
    BoundaryWork.PREDICTION: ("Predict fewer examples, or not in every epoch", TENTH_EPOCH, RARER),
    BoundaryWork.SAVING: ("Save less often, and only the weights", BEST_ONLY, RARER),
    BoundaryWork.DATASET: (
        "Build the dataset once, before the loop over the epochs, if its data stay the same",
        BUILT_ONCE,
        "dataset-once",
    ),
    BoundaryWork.FILLING: (
        "Shuffle names of files or a small buffer, and let one iterator go on over all epochs",
        SMALL_BUFFER,
        "",
    ),
    BoundaryWork.COLLECTING: ("Leave the collection to Python", NO_COLLECTION, ""),
    BoundaryWork.PLOT: ("Draw every tenth epoch, or after the training", TENTH_EPOCH, RARER),
    BoundaryWork.PYTHON: (LESS_OFTEN, TENTH_OR_ONCE, "dataset-once"),
    BoundaryWork.OF_FIT: (
        "Give each epoch more steps: fit itself takes this time between two epochs",
        LONG_EPOCHS,
        "",
    ),
    BoundaryWork.OTHER: (LESS_OFTEN, TENTH_OR_ONCE, ""),
}
"""What to do, the code, and the edit."""
