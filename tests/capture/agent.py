"""Loads the agent as sitecustomize does: by path, under its private name."""

import importlib.util

import tfdoctor.capture
from tests.kit import *

NAME = "_tfdoctor_agent"


def load(module: str) -> ModuleType:
    """Return a module of the agent."""
    if NAME not in sys.modules:
        folder = Path(tfdoctor.capture.__file__).parent / "agent"
        spec = importlib.util.spec_from_file_location(
            NAME, folder / "__init__.py", submodule_search_locations=[str(folder)]
        )
        assert spec is not None
        assert spec.loader is not None
        sys.modules[NAME] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[NAME])
    return importlib.import_module(f"{NAME}.{module}")
