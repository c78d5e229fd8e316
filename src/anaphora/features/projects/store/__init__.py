"""Projects in the database: files, sections, the graph, and the notes that concern them."""
