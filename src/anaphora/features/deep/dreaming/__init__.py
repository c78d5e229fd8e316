"""What happens after a session: gaps explored again, facts taken out, work queued."""
