"""The composition root: what a home and each of its namespaces are made of, and how it is wired."""
