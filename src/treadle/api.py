"""The pipe as one readable function: look(), preview(), run()."""
