"""Truth: conversation threads as files, and everything else in SQL. Never derived, never lost."""
