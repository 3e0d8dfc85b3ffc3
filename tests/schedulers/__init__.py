"""Real batch systems for tests, on this machine alone: SLURM and Grid Engine as Debian packages them.

`start.py` starts one from outside, in namespaces of its own; `inside.py` is the first process in there, whose
end is the end of every daemon and every job; `slurm.py` and `sge.py` know how each is set up.
"""
