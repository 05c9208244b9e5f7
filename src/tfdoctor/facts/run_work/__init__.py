"""What lines and calls of the run spend their time on: item by item or all at once, per call or per example."""
