"""The work in the trace, laid out in time: the trainer's thread and what ran."""
