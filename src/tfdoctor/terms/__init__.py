"""The terms of recordings and reports: units, kinds, verdicts, errors, and how numbers become text."""
