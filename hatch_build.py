"""What the package index shows depends on where the project is published, so it is known when a release is built.

``TFDOCTOR_REPOSITORY=https://github.com/me/tfdoctor make dist`` makes links and pictures of the README, which are
relative, lead into that repository, and names it in the metadata. Without the variable the README stays as it is.
"""

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

VARIABLE = "TFDOCTOR_REPOSITORY"

LINK = re.compile(r"(!?)\[([^]]*)\]\((?!https?://|#)([^)]+)\)")
"""A Markdown link or picture with a relative target."""


class PublicAddress(MetadataHookInterface):
    """Sets the fields `readme` and `urls`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Fill the dynamic fields of the project."""
        repository = os.environ.get(VARIABLE, "").rstrip("/")
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        if repository:
            tag = f"v{metadata['version']}"
            text = _with_public_links(text, repository, tag)
            metadata["urls"] = {
                "Repository": repository,
                "Documentation": f"{repository}/blob/{tag}/docs/index.md",
                "Changelog": f"{repository}/blob/{tag}/CHANGELOG.md",
            }
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def _with_public_links(text: str, repository: str, tag: str) -> str:
    """Return the README with links to the pages of a release, and pictures as files of it."""

    def public(link: re.Match[str]) -> str:
        picture, words, target = link.groups()
        return f"{picture}[{words}]({repository}/{'raw' if picture else 'blob'}/{tag}/{target})"

    return LINK.sub(public, text)
