"""What the script has imported of what tfdoctor knows."""

from __future__ import annotations

import sys

TRAINERS = ("tensorflow", "jax", "torch")  # Frameworks that train


def versions() -> dict[str, str]:
    """Return the versions of what the script has imported."""
    known = {"python": ".".join(map(str, sys.version_info[:3]))}
    for name in (*TRAINERS, "keras", "tf_keras", "numpy"):
        version = getattr(sys.modules.get(name), "__dict__", {}).get("__version__")
        if isinstance(version, str):
            known[name] = str(version)
    build = getattr(sys.modules.get("tensorflow.python.platform.build_info"), "build_info", {})
    for name in ("cuda", "cudnn"):
        if build.get(f"{name}_version"):
            known[name] = str(build[f"{name}_version"])
    return known
