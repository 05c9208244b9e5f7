"""The input pipeline, from its datasets to the device."""

from tfdoctor.diagnosis.rule import Topic

TOPIC = Topic.INPUT
