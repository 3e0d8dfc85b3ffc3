"""Reading a workflow file: TOML text to typed values, every error at once. The door is `read.read`."""
