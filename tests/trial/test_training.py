"""Whether two runs train the same, from what the agent wrote of each: all that is told is in a golden text."""

from tests.facts.kit import Told
from tests.trial.kit import *

CHANGED, EXACT = Variant("mine.diff"), Variant("cache", exact=True)
PARALLEL = Variant("parallel-map", exact=True, reorders=True)


def run(digest: str, losses: Sequence[float], sizes: Sequence[int] = (1, 1)) -> TrialRun:
    """Return a run with these weights, whose calls of so many steps each returned a loss."""
    state = {"step": sum(sizes), "digest": digest, "losses": [*losses]}
    read = Loop.read(loop([1.0] * (len(sizes) - 1), sizes=[*sizes], state=state))
    return TrialRun(state=read.state, finite=True)


def two_steps(variant: Variant, own: str, as_is: str) -> TrainingMatch:
    """Compare runs of two steps, each told by its weights and its last loss."""
    runs = ([one.split() for one in many.split(", ")] for many in (own, as_is))
    return compare(variant, *([run(digest, [2.0, float(loss)]) for digest, loss in many] for many in runs))


told = Told()
UNSEEN = [run(name, [], [1] * 8) for name in ("one", "two", "three")]
AS_OFTEN = [run("one", [2.0, 1.9, 1.8, 1.7, 1.6, 1.5, 1.4, 1.3], [1] * 8)] * 2
OTHERWISE = [run("one", [2.0, 1.9, 1.8], [3] * 3)] * 2
rows = {
    # A call of four steps returns the loss after the fourth, not that of a first step.
    "losses are compared after the same steps": (CHANGED, [run("two", [1.7, 1.43], [4, 4])], AS_OFTEN),
    # Runs as it is repeat bit by bit, so the change made the difference.
    "other weights, and no losses": (CHANGED, UNSEEN[1:2], UNSEEN[:1] * 2),
    "no losses, and the program does not repeat": (CHANGED, UNSEEN[1:2], UNSEEN[::2]),
    "no losses after the same steps": (CHANGED, [run("two", [2.0, 1.9], [4, 4])], OTHERWISE),
}
told[compare] = rows

# A program that draws others each time blames no change for its order.
for variant in (EXACT, CHANGED, PARALLEL):
    told.add(f"by chance: {variant.name}", partial(two_steps, variant, "c 1.501", "a 1.5, b 1.502"))
    told.add(f"beyond chance: {variant.name}", partial(two_steps, variant, "c 2.5", "a 1.5, b 1.502"))

told.add("why it is unknown", lambda: two_steps(EXACT, "c 2.5", "a 1.5, b 1.502").why)
TWICE = "a 1.5, a 1.5"
more = {
    "random numbers in another order": (PARALLEL, "b 1.52, c 1.48", TWICE),
    "an exact change has no order": (EXACT, "b 1.52, c 1.48", TWICE),
    "nothing comes in any order": (PARALLEL, "b 1.52, b 1.52", TWICE),
    "nor is that what moves it": (PARALLEL, "b 1.9, c 1.901", TWICE),
    "one run of two is the same": (PARALLEL, "a 1.5, c 1.501", TWICE),
    "both are the same": (PARALLEL, TWICE, TWICE),
    "one run as it is shows nothing of how much two differ": (CHANGED, "b 1.5", "a 1.5"),
}
told[two_steps] = more
test_training = told.test("training")
