"""What a report shows beside the verdicts: the run, its devices, its machine and its hosts."""
