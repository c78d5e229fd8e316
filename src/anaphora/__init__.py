"""Memory and recall for AI agents, on the user's own machine."""
