"""Functions that are not traced, or traced and compiled again and again."""

from tfdoctor.diagnosis.rule import Topic

TOPIC = Topic.EXECUTION
