"""From a recording to a diagnosis: the engine, the order of findings, their price and the summaries."""
