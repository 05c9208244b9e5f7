"""The figures as lines on a terminal and as tables in Markdown."""

from collections.abc import Iterable, Iterator, Sequence

from benchmarks.accuracy.scores import (
    HELD,
    Errors,
    Measured,
    Origin,
    Score,
    broken,
    errors,
    precision,
    recall,
    scores,
    summary,
    undeclared,
)
from benchmarks.pages import table

Row = tuple[str, ...]

RECALL, PRECISION, MEDIAN, NINETIETH = 0.95, 0.98, 0.10, 0.25
"""The aims: of recall and precision at least, of errors at most."""


def markdown(measured: Sequence[Measured], later: Sequence[str] = ()) -> str:
    """Return the page's tables, with the days and the machines; `later` are the rules that did not judge."""
    parts = [
        f"{_origins(measured)}{_later(later)}",
        "\n".join(f"- {line}" for line in summaries(measured)),
        _table(RULES, rule_rows(scores(measured))),
        _table(PAIRS, (pair_row(measurement) for measurement in measured if not measurement.pair.trap)),
        _table(TRAPS, (trap_row(measurement) for measurement in measured if measurement.pair.trap)),
    ]
    return "\n\n".join(parts)


def _origins(measured: Sequence[Measured]) -> str:
    rounds = max((len(one.rounds) for one in measured), default=0)
    timed = _when([one.timed for one in measured])
    recorded = _when([one.recorded for one in measured])
    return f"Timed {timed}, up to {rounds} rounds. Recorded {recorded}."


def _when(origins: Iterable[Origin | None]) -> str:
    known = {origin for origin in origins if origin}
    days = sorted({origin.day for origin in known})
    first_and_last = " to ".join(dict.fromkeys((days[0], days[-1]))) if days else "on an unknown day"
    machines = " and ".join(sorted({origin.machine for origin in known}))
    return f"{first_and_last} on {machines}" if machines else first_and_last


def _later(rules: Sequence[str]) -> str:
    names = ", ".join(rules)
    return f" Rules added since, which did not judge these recordings: {names}." if rules else ""


RULES = ("rule", "found", "missed", "falsely found")
PAIRS = (
    *("pair", "family", "rule exists", "fault", "fixed", "measured saving", "quartiles"),
    *("predicted", "off by", "mistakes"),
)
TRAPS = ("pair", "what a naive check would say", "fault", "fixed", "mistakes")


def _table(columns: Row, rows: Iterable[Row]) -> str:
    return "\n".join(table(columns, rows))


def rule_rows(counted: dict[str, Score]) -> Iterator[Row]:
    """Yield a row for each rule, and one for all."""
    for rule, row in counted.items():
        yield rule, str(row.found), str(row.missed), str(row.falsely)
    total = counted.values()
    yield ("all", *(str(sum(getattr(row, name) for row in total)) for name in ("found", "missed", "falsely")))


def pair_row(measurement: Measured) -> Row:
    """Return the row of a pair with a fault."""
    fault, fixed = steps(measurement)
    low, high = measurement.spread or (None, None)
    return (
        measurement.pair.name,
        measurement.pair.family,
        "yes" if measurement.pair.exists else "no",
        fault,
        fixed,
        percent(measurement.saving),
        "-" if low is None else f"{percent(low)} to {percent(high)}",
        predicted(measurement),
        "-" if measurement.error is None else f"{measurement.error * 100:+.0f}",
        mistakes(measurement),
    )


def trap_row(measurement: Measured) -> Row:
    """Return the row of a pair with a trap, where the naive finding is wrong."""
    return (measurement.pair.name, measurement.pair.trap, *steps(measurement), mistakes(measurement))


def steps(measurement: Measured) -> tuple[str, str]:
    """Return the median steps of both twins."""
    if not measurement.rounds:
        return "-", "-"
    middle = sorted(measurement.rounds, key=lambda pair: pair[0] / pair[1])[len(measurement.rounds) // 2]
    return f"{middle[0]:.1f} ms", f"{middle[1]:.1f} ms"


def predicted(measurement: Measured) -> str:
    """Return the predicted saving."""
    if measurement.predicted is None:
        return "-"
    return ("at most " if measurement.predicted.at_most else "") + percent(measurement.predicted.share)


def mistakes(measurement: Measured) -> str:
    """Return the missed and the false findings."""
    return "; ".join(measurement.mistakes()) or "none"


def percent(share: float | None) -> str:
    """Return a share in percent."""
    return "-" if share is None else f"{share:.0%}"


def summaries(measured: Sequence[Measured]) -> Iterator[str]:
    """Yield the figures that tfdoctor aims at, each with its aim."""
    by_rule = scores(measured)
    counted = by_rule.values()
    yield _aimed("recall", recall(counted), RECALL)
    yield _aimed("precision", precision(counted), PRECISION)
    number, rules = undeclared(by_rule)
    if rules:
        falsely = sum(row.falsely for row in counted)
        yield (
            f"counted as falsely found, by rules that the corpus does not declare anywhere ({', '.join(rules)}), "
            f"so that it is unknown whether they are true: {number} of {falsely}"
        )
    both = summary([abs(measurement.error) for measurement in measured if measurement.error is not None])
    yield _off("all predicted savings", both)
    yield _off("of these, expected savings", errors(measured, at_most=False))
    yield _off("of these, ceilings, as if they were expected", errors(measured, at_most=True))
    over, of = broken(measured)
    names = f" ({', '.join(over)})" if over else ""
    yield (
        f"ceilings that the measured saving exceeded by more than {HELD * 100:.0f} % of the step: "
        f"{len(over)} of {of}{names}"
    )


def _aimed(name: str, value: float | None, aim: float) -> str:
    if value is None:
        return f"{name}: nothing to count"
    return f"{name}: {value:.3f} (aim: {aim}; {'reached' if value >= aim else 'not reached'})"


def _off(name: str, off: Errors | None) -> str:
    if off is None:
        return f"{name}: none"
    reached = off.median <= MEDIAN and off.ninetieth <= NINETIETH
    return (
        f"{name} ({off.number}): off by {off.median * 100:.0f} % of the step in the median, "
        f"{off.ninetieth * 100:.0f} % at the 90th percentile "
        f"(aim: {MEDIAN * 100:.0f} and {NINETIETH * 100:.0f}; {'reached' if reached else 'not reached'})"
    )
