"""The largest set of changes that helps: those that helped alone are added one by one, the best first.

A change stays when the set with it is faster than the set without: both run in the same rounds. Of changes that
exclude each other, the faster one stays.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from tfdoctor.diagnosis.savings import Order, Relationship
from tfdoctor.diagnosis.trials import Beside, Difference, Measured
from tfdoctor.trial import statistics
from tfdoctor.trial.rounds import AROUND, Runs
from tfdoctor.trial.schedule import LEAST_ROUNDS, MOST_SPOILED
from tfdoctor.trial.variants import Variant

MOST_ROUNDS = 6  # Rounds of two sets, while the one with the change seems to be faster and that is not sure
# Makes one variant of several; None where they do not go together.
Join = Callable[[Sequence[Variant]], Variant | None]
Pairs = frozenset[frozenset[str]]  # Rules whose findings exclude each other


def rivals(order: Order | None) -> Pairs:
    """Return the rules whose findings exclude each other, as the diagnosis says: fix one or the other."""
    relations = order.relations if order else ()
    return frozenset(
        frozenset((relation.rule, other))
        for relation in relations
        if relation.kind is Relationship.INSTEAD
        for other in relation.others
    )


@dataclass(slots=True)
class Combination:
    """The changes that help together so far."""

    runs: Runs
    variants: Sequence[Variant]  # all, in the report's order: a set's name has this order
    join: Join
    broken: Callable[[Variant], bool]  # whether a variant trains something else than it should
    rivals: Pairs = frozenset()
    kept: list[Variant] = field(default_factory=list)
    best: Variant | None = None  # all of them at once
    made: dict[str, Variant] = field(default_factory=dict)  # sets, by name
    beside: dict[str, Beside] = field(default_factory=dict)  # how a change did, by its name

    def add(self, helped: Iterable[Variant]) -> None:
        """Try to add these changes; those that were tried before are left out."""
        for variant in helped:
            if variant not in self.kept and variant.name not in self.beside:
                self._add(variant)

    def _add(self, variant: Variant) -> None:
        if self.best is None:
            self.kept, self.best = [variant], variant
            return
        excluded = [one for one in self.kept if self._exclude(one, variant)]
        left = [one for one in self.kept if one not in excluded]
        parts = [one for one in self.variants if one == variant or one in left]
        candidate = self._joined(parts)
        if candidate is None:
            return
        measured = self._versus(self.best, candidate)
        if measured is None:
            return
        self.beside[variant.name] = Beside(
            others=tuple(one.name for one in excluded or self.kept), instead=bool(excluded), measured=measured
        )
        # One of two that exclude each other must be chosen, so the faster one is; a change is added only where the
        # trial showed that it saves more.
        faster = measured.share > 0 if excluded else measured.difference is Difference.SAVES
        if faster and not self.broken(candidate):
            self.kept, self.best = parts, candidate

    def _exclude(self, one: Variant, other: Variant) -> bool:
        """Say whether two changes cannot be made together: by the diagnosis, or in the same lines."""
        pairs = (frozenset((a, b)) for a in one.rules for b in other.rules)
        if set(one.rules) & set(other.rules) or any(pair in self.rivals for pair in pairs):
            return True
        return self.join([one, other]) is None

    def _joined(self, parts: Sequence[Variant]) -> Variant | None:
        if len(parts) == 1:
            return parts[0]
        variant = self.join(parts)
        if variant is not None:
            self.made[variant.name] = variant
            self.runs.sets.add(variant.name)
        return variant

    def _versus(self, best: Variant, candidate: Variant) -> Measured | None:
        """Run two variants in the same rounds; return what the second saves of the step of the first."""
        runs = self.runs
        while _open(runs, best.name, candidate.name) and runs.spoiled < MOST_SPOILED:
            runs.round([best, candidate])
        if candidate.name in runs.why:
            return None
        return statistics.against(runs.rounds, candidate.name, best.name)


def _open(runs: Runs, best: str, candidate: str) -> bool:
    """Say whether two variants need another round that has both, and whether there is time for what they need."""
    if best in runs.why or candidate in runs.why:
        return False
    done = runs.with_both(best, candidate)
    if done < LEAST_ROUNDS:
        return runs.clock.affordable() >= (LEAST_ROUNDS - done) * (AROUND + 2)
    measured = statistics.against(runs.rounds, candidate, best)
    unsure = measured is not None and measured.difference is Difference.NONE and measured.share > 0
    return unsure and done < MOST_ROUNDS and runs.clock.affordable() >= AROUND + 2
