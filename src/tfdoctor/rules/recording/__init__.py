"""The recording itself."""
