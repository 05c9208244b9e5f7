"""The verdict in words that a reviewer can quote, and how far to trust it."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from tfdoctor import text
from tfdoctor.diagnosis import PARTS, Diagnosis, LimitSet, Result, Saving, StepsSummary
from tfdoctor.humanize import about_ms, counted, factor, milliseconds, share
from tfdoctor.kinds import StepSource
from tfdoctor.report.money import is_about_money
from tfdoctor.rule import Topic
from tfdoctor.units import Quantity
from tfdoctor.verdict import Bound, Concern, Errored, Finding, Healthy, NotApplicable

PART_LABELS = {
    "input": "input wait",
    "transfer": "transfers",
    "host": "host",
    "device": "device",
    "collective": "collectives",
    "between": "between steps",
    "unknown": "unaccounted for",
}
"""What a part of a step is called in the bar, the charts and the tables."""

_LARGEST = {
    "input": "waiting for input",
    "transfer": "copying between host and device",
    "host": "in Python and op dispatch on the host",
    "device": "computing",
    "collective": "in collective communication between replicas",
    "between": "between steps",
    "unknown": "unaccounted for",
}

_SOURCES = {
    StepSource.KERAS_FIT: "the training loop of Keras",
    StepSource.KERAS_TRAIN_ON_BATCH: "train_on_batch of Keras",
    StepSource.TF_DATA_LOOP: "a loop over a tf.data iterator",
    StepSource.REPEATED_CALL: "a function called again and again",
    StepSource.EAGER_GRADIENT: "a gradient taken again and again",
    StepSource.SESSION_RUN: "calls of Session.run that train",
    StepSource.GRAPH_PERIOD: "the period of the graph's executions",
    StepSource.MARKERS: "step markers in the trace",
    StepSource.TPU_STEPS: "the TPU's own step line",
    StepSource.XLA_RUNS: "the runs of the compiled program that trains",
    StepSource.XLA_CALLS: "calls of the compiled function that trains",
    StepSource.GRAPH_LOOP: "a loop inside a tf.function",
    StepSource.NONE: "nothing in the trace",
}


def verdict(diagnosis: Diagnosis) -> tuple[str, ...]:
    """Return the sentences of the verdict: what a step takes, and what would change it."""
    return (_step_sentence(diagnosis.steps), _change_sentence(diagnosis))


def trust(diagnosis: Diagnosis) -> tuple[str, ...]:
    """Return what the trust rests on: the steps seen, their spread, and the reasons against."""
    steps, code = diagnosis.steps, diagnosis.subject.exit_code
    sentences = [_seen(steps), _spread(steps)] if steps.rows else []
    sentences += [text.sentence(reason) for reason in diagnosis.trust.reasons]
    if code:
        sentences.append(f"The run itself ended with exit code {code}.")
    return tuple(filter(None, sentences))


def saves(saving: Saving | None) -> str:
    """Return what a change saves, "at most" when it is a ceiling; "" when there is no number."""
    if saving is None or not is_known(saving.per_step.value):
        return ""
    if saving.per_step.value <= 0:
        first = " and ".join(map(text.name, saving.after))
        verb = "is" if len(saving.after) == 1 else "are"
        return f"nothing until {first} {verb} fixed" if first else "nothing"
    ceiling = "at most " if saving.bound is Bound.AT_MOST else ""
    return f"{ceiling}{milliseconds(saving.per_step.value)} ({share(saving.share)})"


def limit_set(limit: LimitSet) -> str:
    """Return which limit has another value than its own, and by whom."""
    rule, name, by = map(text.name, (limit.rule, limit.name, limit.by))
    return f"{rule}: {name} is {limit.value:g} instead of {limit.default:g}, set by {by}."


def is_known(value: float | None) -> bool:
    """Return whether there is a number, and a finite one."""
    return value is not None and math.isfinite(value)


def step_count(steps: StepsSummary) -> int:
    """Return how many steps were seen: at least one a row."""
    return max(steps.count, len(steps.rows))


def parts_of(steps: StepsSummary) -> list[tuple[str, float]]:
    """Return the parts that take time, in their order."""
    return known_parts(steps.breakdown_ms)


def known_parts(breakdown_ms: Mapping[str, float]) -> list[tuple[str, float]]:
    """Return the parts of a breakdown that take time, in their order."""
    times = [(part, breakdown_ms.get(part, 0.0)) for part in PARTS]
    return [(part, time) for part, time in times if is_known(time) and time > 0]


def _step_sentence(steps: StepsSummary) -> str:
    if steps.median_ms is None or not is_known(steps.median_ms):
        reason = text.prose(steps.missing).rstrip(".")
        return f"No training step was found: {reason}." if reason else "No training step was found."
    each = "A usual" if is_mixed(steps) else "Each"
    start = f"{each} step takes {milliseconds(steps.median_ms)}"
    if step_count(steps) == 1:
        start = f"The only step recorded took {milliseconds(steps.median_ms)}"
    if not (parts := parts_of(steps)):
        return f"{start}."
    part, time = max(parts, key=lambda entry: entry[1])
    amount = "all of it" if len(parts) == 1 else f"{milliseconds(time)} of it"
    return f"{start}, {amount} {_LARGEST[part]}{_rest(steps)}."


FAR = 1.25
"""Times the median: a mean beyond it tells of steps that are no part of the breakdown."""


def is_mixed(steps: StepsSummary) -> bool:
    """Return whether steps that are left out of the breakdown take so long that a usual step is not all."""
    mean, usual = steps.mean_ms, steps.median_ms
    apart = any(not row.steady for row in steps.rows)
    return bool(apart and mean and usual and is_known(mean) and mean >= FAR * usual)


def _rest(steps: StepsSummary) -> str:
    """Say what the steps that were left out make of the mean, where that is much."""
    if not is_mixed(steps) or steps.mean_ms is None:
        return ""
    long = [row.total_ms for row in steps.rows if not row.steady]
    return (
        f"; {counted(len(long), 'other')} of {len(steps.rows)} took up to {milliseconds(max(long))}, so "
        f"that the mean is {milliseconds(steps.mean_ms)}"
    )


def _change_sentence(diagnosis: Diagnosis) -> str:
    findings = [result for result in diagnosis.results if _slows_the_run(result)]
    if not findings:
        return _nothing_found(diagnosis.results, len(diagnosis.settings.off))
    said = [_together(diagnosis) or _best_alone(findings)]
    if is_mixed(diagnosis.steps):
        said = [*map(_of_long_steps, findings), *said]
    return " ".join(filter(None, said))


def _of_long_steps(result: Result) -> str:
    outcome = result.outcome
    if not isinstance(outcome, Finding) or outcome.concern is not Concern.LONG_STEPS:
        return ""
    return text.sentence(text.prose(outcome.summary))


def _slows_the_run(result: Result) -> bool:
    """Return whether a result is a fault of the run: a poor recording of it is none, nor is its price."""
    fault = isinstance(result.outcome, Finding) and result.rule.topic is not Topic.RECORDING
    return fault and not is_about_money(result)


ONLY_TOGETHER = "Some of that they gain only together: one is worth more after another."


def _together(diagnosis: Diagnosis) -> str:
    now, together = diagnosis.steps.median_ms, diagnosis.together
    if together is None or now is None or not together.rules or not _gains(together.per_step):
        return ""
    after = now - together.per_step.value
    if not 0 < after < now:
        return ""
    changes = counted(len(together.rules), "change").capitalize()
    mixed = is_mixed(diagnosis.steps)  # a factor of usual steps is none of the run
    it, times = ("usual steps", "") if mixed else ("it", f" ({factor(now / after)})")
    if together.bound is Bound.AT_MOST:
        text = f"{changes} would bring {it} to {about_ms(after)} at best{times}."
    else:
        text = f"{changes} would bring {it} to about {about_ms(after)}{times}."
    return f"{text} {ONLY_TOGETHER}" if together.more_than_alone else text


def _best_alone(findings: Sequence[Result]) -> str:
    faults = counted(len(findings), "fault").capitalize()
    were = "was" if len(findings) == 1 else "were"
    savings = [r.saving for r in findings if r.saving and _gains(r.saving.per_step)]
    if not savings:
        return f"{faults} {were} found; what fixing would save could not be computed."
    best = max(savings, key=lambda saving: saving.per_step.value)
    return f"{faults} {were} found; the costliest takes {saves(best)} of each step."


def _nothing_found(results: Sequence[Result], off: int = 0) -> str:
    kinds = Counter(type(result.outcome) for result in results)
    healthy, unchecked = kinds[Healthy], kinds[NotApplicable] + kinds[Errored]
    could = f"{counted(unchecked, 'rule')} could not be checked"
    if off:
        could += f", {counted(off, 'rule')} {'was' if off == 1 else 'were'} switched off"
    if not results:
        return "Nothing can be said about its health: every rule was switched off."
    if not healthy:
        return f"Nothing can be said about its health: {could}, and no other was."
    well = f"{counted(healthy, 'rule')} {'was' if healthy == 1 else 'were'} healthy"
    if unchecked > healthy:
        return f"No fault was found, which says little: {well}, but {could}."
    rest = f", {could}" if unchecked or off else ""
    return f"Nothing that tfdoctor checks would make it faster: {well}{rest}."


def _gains(saved: Quantity) -> bool:
    return is_known(saved.value) and saved.value > 0


def _seen(steps: StepsSummary) -> str:
    count, outliers = step_count(steps), sum(not row.steady for row in steps.rows)
    source = _SOURCES[steps.source]
    apart = f", {counted(outliers, 'outlier')} left out of the breakdown" if outliers else ""
    return f"{counted(count, 'step').capitalize()} seen, found by {source}{apart}."


def _spread(steps: StepsSummary) -> str:
    if not (is_known(steps.p10_ms) and is_known(steps.p90_ms)) or step_count(steps) == 1:
        return ""
    low, high = milliseconds(steps.p10_ms), milliseconds(steps.p90_ms)
    return f"Eight steps in ten took between {low} and {high}."
