"""What surrounds the operations of a step: Python, launches, waits and calls."""

from tfdoctor.diagnosis.rule import Topic

TOPIC = Topic.EXECUTION
