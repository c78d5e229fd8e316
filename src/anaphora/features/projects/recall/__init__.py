"""The context lane: from a focus to a package of what a task needs to know."""
