"""The operations of a step."""

from tfdoctor.diagnosis.rule import Topic

TOPIC = Topic.OPERATIONS
