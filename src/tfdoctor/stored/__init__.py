"""A diagnosis as the object of report.json, and back again: nothing is lost between the two."""
