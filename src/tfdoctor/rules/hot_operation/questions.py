"""What to ask of operations that take long, by what they are computed from and what calls them."""

import re
from collections.abc import Iterable, Iterator

from tfdoctor.facts.operations.dependence import Source
from tfdoctor.facts.savings.layer_calls import CalledLayer
from tfdoctor.rules.hot_operation.called_layers import SHOWN_LINES
from tfdoctor.rules.hot_operation.hot_work import HotWork
from tfdoctor.terms.humanize import counted, location
from tfdoctor.terms.verdict import Location, Remedy

PYTHON = re.compile(r"(?:Eager)?PyFunc(?:Stateless)?")
"""The types of tf.py_function and tf.numpy_function."""

SIZE = "needed in every step, on tensors of this size and type?"
"""The question about operations that depend on both, or on what is unknown."""

ASKED = {
    frozenset(
        (Source.VARIABLES,)
    ): "depends on variables only: is it needed in every step, or is every few steps enough?",
    frozenset(
        (Source.BATCH,)
    ): "reads no variable: can the input pipeline do it, or is a smaller tensor or type possible?",
}
"""The questions about other operations, by what they are computed from."""


def remedies(hot: Iterable[HotWork]) -> Iterator[Remedy]:
    """Yield one question for each line, about what takes most of it."""
    asked: set[Location | str] = set()
    for remedy in map(_remedy, hot):
        key = remedy.at or remedy.action
        if key not in asked:
            asked.add(key)
            yield remedy


def _remedy(hot: HotWork) -> Remedy:
    if hot.layers and not hot.avoidable:
        if hot.repeated_ms:
            return _reuse(hot.layers)
        if 2.0 * hot.ms_of(hot.layers[0]) >= hot.ms - hot.host_ms:
            return _call_less(hot.layers[0])
    compiled = all(row.operation and row.operation.compiled for row in hot.groups[0].rows)
    if hot.short:
        fuse = "" if compiled else ", or can XLA fuse them (jit_compile=True)"
        action = f"Can one operation on the whole batch or sequence replace these{fuse}?"
        return Remedy(action, at=hot.at)
    return Remedy(_question(hot), at=hot.at)


def _call_less(layer: CalledLayer) -> Remedy:
    """Return what to ask of a layer that one step calls several times, at the line that does it most."""
    number_of = counted(len(layer.calls), "time")
    question = "is the same computed again, or can one call on a larger tensor replace these?"
    by = ", ".join(location(line) for line in list(layer.callers)[:SHOWN_LINES])
    through = f" (by a function that is called at {by})" if by else ""
    action = f"Layer {layer.name} is called {number_of} in each step{through}: {question}"
    return Remedy(action, at=next(iter(layer.places), None))


def _reuse(layers: Iterable[CalledLayer]) -> Remedy:
    """Return where layers compute the same again: those of most time, and all lines that call them."""
    repeated = [layer for layer in layers if layer.repeated_ms]
    longest = max(repeated, key=lambda layer: layer.repeated_ms)
    same = max(longest.equal, key=lambda calls: sum(call.ms for call in calls))
    lines = ", ".join(dict.fromkeys(location(call.place) for call in same if call.place))
    others = f" (and {counted(len(repeated) - 1, 'more layer')})" if len(repeated) > 1 else ""
    number_of = counted(len(same), "time")
    action = (
        f"Layer {longest.name}{others} computes the same {number_of} in each step ({lines}): "
        "call it once and reuse the result"
    )
    return Remedy(action, at=same[-1].place)


def _question(hot: HotWork) -> str:
    """Return what to ask, by what the operations are computed from."""
    group = hot.groups[0]
    kind = "this" if hot.title else group.type
    if PYTHON.fullmatch(group.type) and not hot.title:
        return f"{group.type} runs Python in each step: can TensorFlow operations compute this?"
    if hot.only_metrics:
        return "Are these metrics needed in every training step? Compute them on validation data once an epoch"
    if hot.constant:
        return f"Compute {kind} once, before the training loop"
    if hot.title:
        return "Are these needed in every step, on tensors of this size and type, or can XLA fuse them?"
    if group.is_matrix:
        return f"Is a {kind} of this size needed ({group.makes or 'shapes unknown'})?"
    asked = ASKED.get(group.inputs) if group.inputs and not group.loop else None
    return f"{kind} {asked}" if asked else f"Is {kind} {SIZE}"
