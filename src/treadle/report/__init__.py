"""What a run looks like to a reader."""
