"""Keras looks through the sample weights one by one.

## What it checks

The time of the run in `handle_partial_sample_weights`, by the line that calls `fit`, `evaluate` or
`train_on_batch`. It looks whether one of several outputs has no weights, and takes an array or a tensor of weights
for a list of outputs: Python compares each weight with `None`, and each comparison of a tensor's slices one out.

## Why it matters

It happens before the first step, each time that such data are passed. Users saw five minutes for a million
examples, and training 160 times as slow as without weights.

## How to fix

Pass the weights in a list, one entry for each output: `sample_weight=[weights]`. Or give `fit` a dataset of
`(x, y, weights)`. Keras 2.13 and later, and Keras 3, do not do it.

## Holds for

Keras 2 in recordings of the whole run by `tfdoctor profile`. The function is seen on the stack, so that the
version does not matter. Tested with records written by hand; never seen in a run of Keras 2.

## Sources

- [TensorFlow issue 48965](https://github.com/tensorflow/tensorflow/issues/48965)
- [TensorFlow issue 73362: with TensorFlow 2.12](https://github.com/tensorflow/tensorflow/issues/73362)
- [Keras pull request 17357: the repair, and why a list helps](https://github.com/keras-team/keras/pull/17357)
"""

from dataclasses import dataclass

from tfdoctor.diagnosis.preconditions import whole_run
from tfdoctor.diagnosis.rule import Topic, limit, share_limit
from tfdoctor.facts.phases.run_phases import RunPhases
from tfdoctor.rules.sample_weight_scan.weight_scans import WeightScan, WeightScans
from tfdoctor.terms.humanize import location, milliseconds, percent
from tfdoctor.terms.kinds import Phase
from tfdoctor.terms.units import count, ms
from tfdoctor.terms.verdict import Concern, Finding, Healthy, Location, Measure, Remedy, RunEffect, Verdict

TOPIC = Topic.RUN
SINCE = "0.2.0"
PRECONDITIONS = (whole_run,)
BY_HAND = "whether the weights are of one output is not in the file"


@dataclass(frozen=True, slots=True)
class Limits:
    """When the scans are reported: both limits must be reached."""

    share: float = share_limit(
        0.02, "Smallest share of the run in scans that is reported; the repair is one pair of brackets"
    )
    least_ms: float = limit(500.0, "Shortest time in ms of all scans; below half a second nobody waits for it")


def check(scans: WeightScans, phases: RunPhases, limits: Limits = Limits()) -> Verdict:
    """Compare the time in scans with the run."""
    taken = sum(line.ms for line in scans.lines)
    share = taken / phases.total_ms if phases.total_ms else 0.0
    evidence = (
        Measure("time in scans of sample weights", ms(taken), ms(limits.least_ms)),
        Measure.share("share of the run in scans of sample weights", share, limits.share),
        Measure("stack samples in scans", count(sum(line.samples for line in scans.lines))),
    )
    if not scans.lines:
        return Healthy(summary="No sample of the run shows a scan of sample weights", concern=Concern.RUN)
    time = f"{milliseconds(taken)} ({percent(share)} of the run)"
    summary = f"Keras looks through sample weights one by one for {time}"
    if share < limits.share or taken < limits.least_ms:
        return Healthy(summary=summary, evidence=evidence, concern=Concern.RUN)
    first = scans.lines[0]
    return Finding(
        summary=f"{summary} at {location(first.at)}" if first.at else summary,
        evidence=evidence,
        remedies=(Remedy("Pass the weights in a list, one entry for each output", IN_A_LIST, first.at),),
        run_effects=tuple(map(_effect, scans.lines)),
        concern=Concern.RUN,
    )


def _effect(line: WeightScan) -> RunEffect:
    subject = location(line.at) if line.at else ""
    return RunEffect(phase=line.phase, of=ms(line.ms), subject=subject)


IN_A_LIST = """\
model.fit(x, y, sample_weight=[weights])  # a list with one entry for each output"""


def example(ms_of_scans: float = 40_000.0, total_ms: float = 90_000.0) -> Verdict:
    """Keras looks through 130,000 weights for 40 of 90 s."""
    scan = WeightScan(Location("train.py", 31), ms_of_scans, round(ms_of_scans / 50))
    lines = (scan,) if scan.samples else ()
    return check(WeightScans(lines), RunPhases.divided(total_ms, {Phase.PREPARING: ms_of_scans}))


sick = example


def healthy() -> Verdict:
    """The weights are in a list."""
    return example(0.0)
