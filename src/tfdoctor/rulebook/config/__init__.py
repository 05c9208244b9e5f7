"""What users set: `[tool.tfdoctor]` in their pyproject.toml, or a tfdoctor.toml.

Found as ruff and pytest find theirs: in the nearest folder, from the current one upward, that has one.
"""

from tfdoctor.rulebook.config.choice import applied
from tfdoctor.rulebook.config.files import find, load
from tfdoctor.rulebook.config.settings import ALL, Config, RuleNames

__all__ = ["ALL", "Config", "RuleNames", "applied", "find", "load"]
