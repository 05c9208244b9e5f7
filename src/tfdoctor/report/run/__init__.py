"""The account of the run in words, for every renderer. It knows nothing of the report of the step."""
