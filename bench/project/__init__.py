"""How well the files that a task touches are found in projects with known answers."""
