"""The parts that can be taken out: values of diagnoses (`tfdoctor.terms.kinds.Part`)."""

from __future__ import annotations

INPUT, CALLBACK, METRICS = "input", "callback", "metrics"
SAVING, SUMMARIES = "saving", "summaries"
EVALUATION, PREDICTION = "evaluation", "prediction"
