"""The report as one HTML file that works offline: text first, charts where the browser runs scripts."""

from functools import partial

from tfdoctor.diagnosis import Diagnosis
from tfdoctor.report import findings
from tfdoctor.report.formats import json
from tfdoctor.report.page import page
from tfdoctor.report.pictures.charts import charts
from tfdoctor.report.pictures.step_bars import step_bars
from tfdoctor.report.run import PHASE_COLOURS
from tfdoctor.report.template import environment, fill

# The picture that shows what the rules of a topic find.
PICTURES = {"input": "pipeline", "operations": "operations", "precision": "operations", "execution": "steps"}

TEMPLATE = "report.html.jinja"


def prepare() -> None:
    """Compile the template."""
    environment().get_template(TEMPLATE)


def render(diagnosis: Diagnosis, *, drawn: bool = True) -> str:
    """Return the whole page; unless ``drawn``, without the code that draws its pictures."""
    shown, seen = page(diagnosis), diagnosis.timeline
    seen = seen if seen and seen.total_ms > 0 else None
    marks = {bar.rules for lane in seen.lanes for bar in lane.bars if bar.rules >= 0} if seen else ()
    seen_rules = {rule for mark in marks for rule in seen.rules[mark]} if seen else set()
    numbered = enumerate(shown.entries, 1)
    return fill(
        TEMPLATE,
        page=shown,
        d=shown.diagnosis,
        timeline=seen,
        # The findings, with their numbers, that are about work of the step in the timeline.
        marked=[one for one in numbered if seen_rules & set(findings.names(one[1]))],
        bars=step_bars(shown.diagnosis),
        charts=charts(shown),
        pictures=PICTURES,
        phases={phase.name.lower(): colour for phase, colour in PHASE_COLOURS.items()},
        carries=drawn,
        contract=json.render_for_page(diagnosis),
    )


# For a notebook: the page asks other reports in it for that code.
render_without_plotly = partial(render, drawn=False)
