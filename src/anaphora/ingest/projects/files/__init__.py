"""The files of a project: which there are, their text, their role. Links are never followed."""
