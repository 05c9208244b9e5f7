"""The devices, processes and memory that a run has, and what they cost."""

from tfdoctor.diagnosis.rule import Topic

TOPIC = Topic.SCALE
