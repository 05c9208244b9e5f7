"""What users set: `[tool.tfdoctor]` in their pyproject.toml, or a tfdoctor.toml.

Found as ruff and pytest find theirs: in the nearest folder, from the current one upward, that has one.
"""

from tfdoctor.config.choice import applied
from tfdoctor.config.files import find, load
from tfdoctor.config.settings import ALL, Config, Names

__all__ = ["ALL", "Config", "Names", "applied", "find", "load"]
