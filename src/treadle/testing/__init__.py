"""Fakes that ship, for users' tests and ours."""
