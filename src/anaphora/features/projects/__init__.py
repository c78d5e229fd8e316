"""Projects: their files and relations, notes about them, and recall packages for a task."""
