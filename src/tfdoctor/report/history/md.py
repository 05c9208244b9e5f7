"""The history as Markdown: a CI job's summary."""

from tfdoctor.diagnosis.history_report import History
from tfdoctor.report.formats.md import ROWS, escaped, marker, table
from tfdoctor.report.history.view import HistoryView


def render(history: History) -> str:
    """Return the history: of each table the first rows."""
    view = HistoryView.of(history)
    parts = [f"## tfdoctor: {escaped(view.headline)} {marker('history')}"]
    for series in view.series:
        parts += [f"### {escaped(series.title)}", escaped(series.about)]
        parts += ["\n".join(f"- {escaped(sentence)}" for sentence in series.sentences)]
        for title, grid in series.tables:
            parts += [f"#### {title}", table(grid.first(2 * ROWS))]
    parts += ["\n".join(f"- {escaped(note)}" for note in view.notes)]
    return "\n\n".join(filter(None, parts)) + "\n"
