"""What functions of libraries do with data: the tables of libraries.toml, by name."""

import tomllib
from pathlib import Path

LIBRARIES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
