"""The pipe and what is done at its end: look, run, touch, evict, clean. What the command line stands on."""
