"""Deep recall: questions that a model answers by searching, what it could not find, and dreams."""
