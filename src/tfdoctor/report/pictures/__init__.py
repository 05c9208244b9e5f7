"""Pictures of a report: plotly figures in JSON, bars and timelines as paths, and their colours."""
