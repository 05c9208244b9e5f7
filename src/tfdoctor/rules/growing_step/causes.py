"""What to change about steps that get slower, by what grows along."""

from tfdoctor.facts.growth.growing_counts import named
from tfdoctor.facts.phases.run_growth import Grows, Trend
from tfdoctor.rules.growing_step.slowing_calls import SlowingCall
from tfdoctor.rules.growing_step.step_lines import StepLine
from tfdoctor.terms.humanize import location
from tfdoctor.terms.verdict import Location, Remedy


def remedies(
    counts: tuple[Trend, ...], cause: StepLine | None, maker: Location | None = None
) -> tuple[Remedy, ...]:
    """Return what to change; the line that grows, or makes operations, is named where the samples show it."""
    if known := _known(counts, cause.at if cause else maker):
        return (known,)
    if cause:
        action = f"Let {location(cause.at)} do the same work in each step, however many came before"
        return (Remedy(action, RUNNING, cause.at),)
    if counts:
        holds = f"Find what keeps {named(counts[0])}, and what each step does with all of them"
        return (Remedy(holds, RUNNING),)
    action = "Find what grows: the inputs, a list that each step processes, or the load of the machine"
    return (Remedy(action, TELL),)


def for_calls(call: SlowingCall, counts: tuple[Trend, ...], at: Location) -> Remedy:
    """Return what to change about calls that get slower."""
    return _known(counts, at) or Remedy(f"Find what {call.name} gets more of in each turn", TELL, at)


def _known(counts: tuple[Trend, ...], at: Location | None) -> Remedy | None:
    """Return what to do about operations or functions that are made again and again; None for other growth."""
    kinds = {trend.what for trend in counts}
    if Grows.GRAPH in kinds:
        return Remedy("Make all operations once, before the loop", GRAPH, at)
    if Grows.FUNCTIONS in kinds:
        return Remedy("Create each tf.function once, outside of the loop", ONCE, at)
    return None


GRAPH = """\
x = tf.compat.v1.placeholder(tf.float32, [None, 32])
loss = loss_of(x)  # all operations are made once, before the loop
tf.compat.v1.get_default_graph().finalize()  # a new operation now raises an error that shows its line
for batch in batches:
    session.run(loss, {x: batch})"""

ONCE = """\
@tf.function  # once, outside of the loop
def train_step(x, y): ..."""

RUNNING = """\
total += float(loss)  # a running sum, instead of np.mean(losses) over all steps so far
recent = collections.deque(maxlen=100)  # the last values, instead of a list that only grows
array = np.empty((steps, size))  # filled by row, instead of np.append, which copies the whole array each time"""

TELL = """\
print(step, batch.shape, len(history))  # every hundred steps: longer inputs need longer steps"""
