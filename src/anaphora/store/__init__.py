"""Stored data: conversation threads as files, everything else in SQL. Never derived, never lost."""
