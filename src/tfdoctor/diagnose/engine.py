"""Applies rules to a recording, in two rounds. Knows no particular rule and no renderer."""

import traceback
from collections.abc import Iterable

from tfdoctor.diagnose.accounts import unexplained
from tfdoctor.diagnose.judging import judged, names_input, timed, with_hidden, within
from tfdoctor.diagnose.rating import rated
from tfdoctor.diagnose.run_pricing import RunPricing
from tfdoctor.diagnose.savings import model_of
from tfdoctor.diagnose.window import only_traced
from tfdoctor.diagnosis import Result
from tfdoctor.diagnosis.rule import Rule
from tfdoctor.facts.chart import Chart, Unavailable
from tfdoctor.facts.savings.unexplained import Unexplained
from tfdoctor.terms.errors import ConfigError
from tfdoctor.terms.verdict import Errored, NotApplicable, Outcome


def examine(chart: Chart, rules: Iterable[Rule], run: RunPricing | None = None) -> tuple[Result, ...]:
    """Apply every rule; a failure of one does not affect the others. The most severe finding comes first.

    First the specific rules, then the general ones, which get what the findings so far leave unexplained. ``run``
    prices by the run, where that is known whole. The verdict, the savings and the severity of a result are final:
    later stages add fields, and what all changes are worth to the evidence of rules about money.
    """
    rules, model, window = tuple(rules), model_of(chart), only_traced(chart)
    said = [(rule, window.checked(_apply(rule, chart))) for rule in rules if not rule.general]
    specific = judged(said, model)
    named = names_input(specific)
    results = with_hidden(said, specific, model, named=named)
    left = unexplained(chart, results)
    asked = [(rule, within(left, window.checked(_apply(rule, chart, left)))) for rule in rules if rule.general]
    general = [timed(result, model) for one in asked for result in judged([one], model)]
    results += with_hidden(asked, general, model, named=named)
    return rated(chart, results, run)


def _apply(rule: Rule, chart: Chart, left: Unexplained | None = None) -> Outcome:
    try:
        return rule.counted(rule.apply(chart, *([] if left is None else [left])))
    except Unavailable as missing:
        return NotApplicable(reason=str(missing))
    except ConfigError as error:  # a rule of the user's own: the sentence names its file
        return Errored(error=str(error), traceback=traceback.format_exc())
    except MemoryError:  # no defect of a rule
        raise
    except Exception as error:  # noqa: BLE001 - one broken rule must not silence the others
        return Errored(error=repr(error), traceback=traceback.format_exc())
