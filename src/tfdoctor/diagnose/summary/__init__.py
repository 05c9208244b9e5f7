"""The parts of a report other than verdicts: the run, its devices, its machine and its hosts."""
