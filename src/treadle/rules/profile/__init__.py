"""Profiles: how a workflow is run at one place, as layers above or below what its file says."""
