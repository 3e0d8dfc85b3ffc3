"""Fake schedulers on PATH: jobs run for real on this machine, and everything can be told to go wrong."""

from treadle.testing.schedulers.fake import FakeCluster
from treadle.testing.schedulers.mischief import Do, Rule
from treadle.testing.schedulers.orders import FakeJob
from treadle.testing.schedulers.site import Kind, Site

__all__ = ["Do", "FakeCluster", "FakeJob", "Kind", "Rule", "Site"]
