"""The files that the input pipeline reads."""

from tfdoctor.diagnosis.rule import Topic

TOPIC = Topic.INPUT
