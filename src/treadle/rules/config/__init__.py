"""`[config]`: declared and plain keys, values of the command line, references to each other."""
