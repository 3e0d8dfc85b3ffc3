"""The one decision: which tasks of the plan will run, and why."""
