"""The HTTP API: routes, what they take and give, and how they answer errors."""
