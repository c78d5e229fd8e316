"""Projects in truth: files, sections, the graph, and the notes that concern them."""
