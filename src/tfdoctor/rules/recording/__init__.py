"""The recording itself."""

from tfdoctor.diagnosis.rule import Topic

TOPIC = Topic.RECORDING
