"""Sources of wildcard values: tables of rows, in the file and in sheets."""
