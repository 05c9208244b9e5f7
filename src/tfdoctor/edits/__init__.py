"""Remedies as edits of the user's own lines, where the file exists and is unchanged since the recording.

No edit changes a file: the report shows the lines before and after, and `--patch` writes all edits as one
diff.
"""

from tfdoctor.edits.patch import edited
from tfdoctor.edits.source import line_hashes, repository_paths

__all__ = ["edited", "line_hashes", "repository_paths"]
