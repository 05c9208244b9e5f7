"""Settings: `[tool.tfdoctor]` in pyproject.toml, or a tfdoctor.toml.

The file of the nearest folder is used, from the current one upward, as in ruff and pytest.
"""

from tfdoctor.rulebook.config.budget import Budget, BudgetLimit
from tfdoctor.rulebook.config.choice import applied
from tfdoctor.rulebook.config.files import find, load
from tfdoctor.rulebook.config.settings import ALL, Config, FailOn, RuleNames

__all__ = ["ALL", "Budget", "BudgetLimit", "Config", "FailOn", "RuleNames", "applied", "find", "load"]
