"""Pipelines: Python files that hold steps, loaded as `pipeline.py[:name]`."""

from __future__ import annotations

from treadle.api.collect import Collector, collect, collecting

__all__ = ["Collector", "collect", "collecting"]
