"""The index of projects: in step with sections and notes of truth, asked field by field."""
