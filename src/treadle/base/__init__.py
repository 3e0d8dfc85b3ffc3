"""What everything stands on: errors, names, places, files, paths, processes, units, secrets."""
