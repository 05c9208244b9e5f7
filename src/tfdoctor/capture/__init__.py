"""Records a run: the only part of tfdoctor that starts processes and reads devices."""

from tfdoctor.capture.launch import Outcome, profile
from tfdoctor.capture.plan import Kind, Plan

__all__ = ["Kind", "Outcome", "Plan", "profile"]
