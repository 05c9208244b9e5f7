"""The history as one HTML file that works offline: text first, charts where the browser runs scripts."""

from markupsafe import Markup

from tfdoctor.diagnosis.history_report import History
from tfdoctor.report import bundle
from tfdoctor.report.history import json
from tfdoctor.report.history.charts import charts
from tfdoctor.report.history.view import HistoryView
from tfdoctor.report.template import fill


def render(history: History) -> str:
    """Return the whole page."""
    return _render(history, drawn=True)


def render_without_plotly(history: History) -> str:
    """Return the page without the code that draws its pictures: 0.5 MB less to compare."""
    return _render(history, drawn=False)


def _render(history: History, *, drawn: bool) -> str:
    pictures = [charts(one, number) for number, one in enumerate(history.series)]
    return fill(
        "history.html.jinja",
        view=HistoryView.of(history),
        pictures=pictures,
        plotly=Markup(bundle.plotly() if drawn and any(pictures) else ""),  # noqa: S704 - of an alphabet without "<"
        plotly_hash=bundle.plotly_hash(),
        alphabet=bundle.ALPHABET,
        contract=json.render(history).strip(),
    )
