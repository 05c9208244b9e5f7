"""The whole run, from its start to its end."""

from tfdoctor.diagnosis.rule import Topic

TOPIC = Topic.RUN
