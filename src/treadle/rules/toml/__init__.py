"""A TOML file as tables: where each thing stands, which keys there are, and what a value must be."""
