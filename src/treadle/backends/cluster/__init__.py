"""Batch systems: SLURM, PBS, SGE, LSF. Four dialects (text alone), one submitter, one poller, one verdict."""
