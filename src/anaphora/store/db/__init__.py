"""Truth in SQL: one schema on SQLite and PostgreSQL. `open_truth` in `engine` opens it."""
