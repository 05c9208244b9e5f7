"""The comparison as Markdown: a comment on a pull request, or a CI job's summary."""

from tfdoctor.diagnosis.comparison import RunComparison
from tfdoctor.report.comparison.view import ComparisonView
from tfdoctor.report.formats.md import ROWS, escaped, marker, table


def render(comparison: RunComparison) -> str:
    """Return the comparison, at most some kilobytes of it."""
    view = ComparisonView.of(comparison)
    parts = [
        f"## tfdoctor: {escaped(view.headline)} {marker(f'diff {comparison.after.title}')}",
        escaped(" ".join(view.sides)),
        "\n".join(f"- {escaped(note)}" for note in view.notes),
    ]
    for title, grid in view.tables:
        parts += [f"### {title}", table(grid.first(2 * ROWS))]
    return "\n\n".join(filter(None, parts)) + "\n"
