"""The project's own tools; run them with ``python -m scripts.<name>``."""
