"""The index of projects: syncs with sections and notes of truth, answers field by field."""
