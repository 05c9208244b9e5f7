"""Precision, and the matrix unit."""

from tfdoctor.diagnosis.rule import Topic

TOPIC = Topic.PRECISION
