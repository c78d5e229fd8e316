"""The database: one schema on SQLite and PostgreSQL. `open_database` in `engine` opens it."""
