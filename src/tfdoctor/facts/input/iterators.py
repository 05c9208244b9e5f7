"""The iterators of tf.data in the trace, one node for each stage of the pipeline.

A trace contains an event for each call of an iterator's GetNext. Events nest on a thread; where a stage
makes its elements on another thread, an ``XProduce`` event there contains the upstream calls, and the
user's function runs in executor events with the id of its ``InstantiatedCapturedFunction``.
"""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.input.iterator_calls import chosen_events, pipeline_calls
from tfdoctor.facts.input.iterator_functions import add_functions
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.steps.steps import Steps, StepSpans
from tfdoctor.facts.timeline.iterator_node import Node
from tfdoctor.facts.timeline.trainer import is_named
from tfdoctor.trace import Line, Trace
from tfdoctor.trace.names import WAIT

# The iterator that the trainer calls; those that it calls in turn have longer names.
ROOT = re.compile(r"Iterator::\w+")
NUMBERED = re.compile(r"\b\w+:\d+")  # tf.data's name of a dataset, alone or in "fused(...)"


@dataclass(frozen=True, slots=True, eq=False)
class Iterators:
    """The training pipeline's nodes by path, and how many batches the training loop took."""

    nodes: dict[str, Node]
    batches: int = 0

    @property
    def passes(self) -> int:
        """How many passes over the data a repeat() had completed in the traced steps, at most."""
        return max((node.repetition for node in self.nodes.values()), default=0)

    @property
    def remade(self) -> bool:
        """Whether several datasets of the same form fed the steps, such as one rebuilt in each epoch."""
        numbered = (NUMBERED.findall(node.name) for node in self.nodes.values())
        nearest: list[str] = next(filter(None, numbered), [])
        kinds = [name.partition(":")[0] for name in dict.fromkeys(nearest)]
        return len(kinds) > len(set(kinds))

    @classmethod
    def measure(cls, trace: Trace, framework: Framework, steps: Steps | Unavailable) -> Self:
        """Collect the iterators that ran between the first and the last step.

        Raises:
            Unavailable: no tf.data iterator ran.
        """
        if framework.no_pipeline:
            raise Unavailable(framework.no_pipeline)
        if isinstance(steps, Unavailable):
            raise steps
        window = StepSpans.of(steps)
        lines, types = (trace.host.lines, trace.host.types) if trace.host else ((), ())
        roots, batches = _training_roots(lines, window)
        nodes, owners = pipeline_calls(lines, types, _members(lines, roots), window)
        add_functions(lines, owners)
        if nodes:
            return cls(dict(sorted(nodes.items())), batches)
        why = "the trace contains no tf.data iterator, so the batches come from elsewhere"
        if any(is_named(line, WAIT.fullmatch).any() for line in lines):
            why = (
                "the trainer waited for batches, but no iterator finished a call in the traced window; trace more "
                "steps (--steps)"
            )
        elif framework.tf_data:
            why = (
                "the trace contains iterators of tf.data, but none that passes a batch to a training step; trace "
                "more steps"
            )
        raise Unavailable(why)


def _training_roots(lines: Iterable[Line], window: StepSpans) -> tuple[set[int], int]:
    """Return the ids of the pipelines that feed the training step, and the number of their batches.

    The first batch that a step requests is its own; a later one may belong to a validation that runs
    before the next step. (Ids are reused, so outlier steps, in which that happens, are left out.)
    """
    calls: list[tuple[int, int]] = []  # start and id, of the pipelines' last iterators
    for line in lines:
        events = chosen_events(line, ROOT.fullmatch, window)
        ids = line.stats.ids_of("id", events)
        calls += zip(line.start_ps[events].tolist(), ids.tolist(), strict=True)
    calls.sort()
    first = np.searchsorted([start for start, _ in calls], window.starts_ps)
    training = {calls[at][1] for at in first.tolist() if at < len(calls)}
    return training, sum(root in training for _, root in calls)


def _members(lines: Iterable[Line], roots: set[int]) -> set[int]:
    """Return the ids of all iterators upstream of these roots.

    An iterator that is made for each batch may have the id of an earlier one, which another root called.
    """
    called: dict[int, set[int]] = defaultdict(set)
    for line in lines:
        events, above = line.stats.ids("parent_id")
        named = np.isin(events, line.stats.having("id"))
        own = line.stats.ids_of("id", events[named])
        for parent, iterator in set(zip(above[named].tolist(), own.tolist(), strict=True)):
            called[parent].add(iterator)
    members: set[int] = set()
    ahead = set(roots)
    while ahead:
        members |= ahead
        ahead = set().union(*(called[one] for one in ahead)) - members
    return members
