"""Paths with wildcards and globs: filled, matched, compared; and listings of what is on the disk."""
