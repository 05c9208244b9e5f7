"""Scores tfdoctor on scripts whose writers know neither its rules nor its corpus."""
