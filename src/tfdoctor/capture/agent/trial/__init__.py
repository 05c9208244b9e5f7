"""A run of a trial: its steps are timed, what a variant sets or takes out is, and nothing else is recorded."""
