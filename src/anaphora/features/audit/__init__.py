"""The audit trail: actions in a namespace with time and author, without content."""
