"""Workflow files: from TOML text to drafts of tasks."""
