"""The index of projects: follows sections and notes of truth, answers field by field."""
