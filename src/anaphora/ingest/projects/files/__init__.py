"""The files of a project, with their text and their role. Links are never followed."""
