"""Remedies as edits of the user's own lines, where the file is at hand and as it was when it ran.

No edit changes a file: the lines before and after are shown in the report, and `--patch` writes all of
them as one diff.
"""

from tfdoctor.edits.draft import edited

__all__ = ["edited"]
