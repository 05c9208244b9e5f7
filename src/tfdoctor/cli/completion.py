"""What shells complete in arguments: names of rules, and of formats, also within a comma-separated list."""

from collections.abc import Callable, Iterator, Sequence
from pkgutil import iter_modules


def rule_names() -> list[str]:
    """Return the names of the built-in rules, without importing them: a shell waits for the answer."""
    import tfdoctor.rules  # noqa: PLC0415 - keeps --help fast

    return sorted(module.name.replace("_", "-") for module in iter_modules(tfdoctor.rules.__path__))


def rules_and_topics() -> list[str]:
    """Return what a list of rules may contain: names, topics and ALL."""
    from tfdoctor.diagnosis.rule import Topic  # noqa: PLC0415 - keeps --help fast
    from tfdoctor.rulebook.config import ALL  # noqa: PLC0415 - same

    return [*rule_names(), *Topic, ALL]


def one_rule(incomplete: str) -> Iterator[str]:
    """Yield the rules whose names begin so."""
    return (name for name in rule_names() if name.startswith(incomplete))


def list_of(known: Callable[[], Sequence[str]]) -> Callable[[str], Iterator[str]]:
    """Return what completes the last name of a comma-separated list, with names that it lacks."""

    def complete(incomplete: str) -> Iterator[str]:
        before, comma, last = incomplete.rpartition(",")
        there = before.split(",")
        for name in known():
            if name.startswith(last) and name not in there:
                yield f"{before}{comma}{name}"

    return complete
