"""Which findings are about which work of a step, by the effects that they state."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Self, TypeVar

from tfdoctor.diagnosis import Result
from tfdoctor.terms.record import Record, field
from tfdoctor.terms.verdict import Effect, Finding, Stage, StepWork

Rules = tuple[str, ...]
K = TypeVar("K")


class WorkMarks(Record):
    """The rules of findings by the work that they are about.

    ``stages`` are about all work of a stage, ``parts`` about time of it that is neither an operation nor a stage of
    the input, ``subjects`` about one of these, by its name.
    """

    stages: Mapping[str, Rules] = field(default_factory=dict)
    parts: Mapping[str, Rules] = field(default_factory=dict)
    subjects: Mapping[tuple[str, str], Rules] = field(default_factory=dict)

    @classmethod
    def of(cls, results: Iterable[Result]) -> Self:
        """Take the effects that make work shorter: what else costs time for it is not what is wrong."""
        stages: dict[str, set[str]] = defaultdict(set)
        parts: dict[str, set[str]] = defaultdict(set)
        subjects: dict[tuple[str, str], set[str]] = defaultdict(set)
        for rule, effect in _shorter(results):
            if not effect.subject:
                stages[effect.stage].add(rule)
            elif effect.subject in set(StepWork):
                parts[effect.stage].add(rule)
            for name in (effect.subject, *effect.parts):
                subjects[effect.stage, name].add(rule)
        return cls(_sorted(stages), _sorted(parts), _sorted(subjects))

    def of_part(self, part: str) -> Rules:
        """Return the rules about a part of the step."""
        return (*self.stages.get(part, ()), *self.parts.get(part, ()))

    def of_work(self, stage: Stage, *names: str) -> Rules:
        """Return the rules about work of a stage that goes by one of these names."""
        own = (rule for name in names for rule in self.subjects.get((stage, name), ()))
        return tuple(dict.fromkeys((*self.stages.get(stage, ()), *own)))


def _shorter(results: Iterable[Result]) -> Iterator[tuple[str, Effect]]:
    """Yield the effects of findings that make work shorter, each with its rule."""
    for result in results:
        effects = result.outcome.effects if isinstance(result.outcome, Finding) else ()
        yield from ((result.rule.name, effect) for effect in effects if effect.names)


def _sorted(found: Mapping[K, Iterable[str]]) -> dict[K, Rules]:
    return {key: tuple(sorted(rules)) for key, rules in found.items()}
