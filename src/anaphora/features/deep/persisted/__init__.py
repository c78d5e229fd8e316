"""What truth keeps of deep questions, and what of it goes when something is forgotten."""
