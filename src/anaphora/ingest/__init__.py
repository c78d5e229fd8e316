"""How things come in: importers and what they feed."""
