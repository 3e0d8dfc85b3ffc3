"""Treadle, a workflow engine: a static plan, one decision, one driver, any backend."""

__version__ = "0.1.0.dev0"
