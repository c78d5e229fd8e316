"""The migrations, named by revision."""
