"""The report as one HTML file that works offline: text first, charts where the browser runs scripts."""

from collections.abc import Mapping
from types import MappingProxyType

from markupsafe import Markup

from tfdoctor.diagnosis import Diagnosis
from tfdoctor.report import bundle, findings, hosts, sections, sentences, tables, words
from tfdoctor.report.charts import charts
from tfdoctor.report.formats import json
from tfdoctor.report.page import page
from tfdoctor.report.run.words import PHASE_COLOURS
from tfdoctor.report.step_bars import step_bars
from tfdoctor.report.template import environment, fill

# The picture that shows what the rules of a topic find.
PICTURES: Mapping[str, str] = MappingProxyType(
    {"input": "pipeline", "operations": "operations", "precision": "operations", "execution": "steps"}
)

MODULES = (findings, hosts, sections, sentences, tables, words)  # What the template calls for its words

TEMPLATE = "report.html.jinja"


def prepare() -> None:
    """Compile the template."""
    environment().get_template(TEMPLATE)


def render(diagnosis: Diagnosis) -> str:
    """Return the whole page."""
    return _render(diagnosis, drawn=True)


def render_without_plotly(diagnosis: Diagnosis) -> str:
    """Return the page without the code that draws its pictures, for which it asks other reports of a notebook."""
    return _render(diagnosis, drawn=False)


def _render(diagnosis: Diagnosis, *, drawn: bool) -> str:
    shown, pictures, seen = page(diagnosis), charts(diagnosis), diagnosis.timeline
    seen = seen if seen and seen.total_ms > 0 else None
    seen_rules = {rule for rules in seen.rules for rule in rules} if seen else set()
    why_missing = {
        "Step by step": "" if diagnosis.steps.rows else diagnosis.steps.missing,
        "Input pipeline": "" if diagnosis.pipeline else diagnosis.pipeline_missing,
        "Layers and operations": "" if diagnosis.operations else diagnosis.operations_missing,
    }
    numbered = enumerate(shown.entries, 1)
    return fill(
        TEMPLATE,
        page=shown,
        d=shown.diagnosis,
        outcomes=findings.by_outcome(diagnosis),
        timeline=seen,
        # The findings, with their numbers, that are about work of the step in the timeline.
        marked=[one for one in numbered if seen_rules & set(findings.names(one[1]))],
        segments=words.segments(diagnosis.steps),
        bars=step_bars(shown.diagnosis),
        accounts=words.accounts(diagnosis),
        device_time=sections.device_time(diagnosis),
        **{module.__name__.rpartition(".")[2]: module for module in MODULES},
        charts=pictures,
        missing=[(title, reason) for title, reason in why_missing.items() if reason],
        pictures=PICTURES,
        phases={phase.name.lower(): colour for phase, colour in PHASE_COLOURS.items()},
        plotly=Markup(bundle.plotly() if drawn and pictures else ""),  # noqa: S704 - of an alphabet without "<"
        plotly_hash=bundle.plotly_hash() if pictures else "",
        alphabet=bundle.ALPHABET,
        contract=json.render_for_page(diagnosis),
    )
