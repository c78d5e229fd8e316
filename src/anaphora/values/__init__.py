"""Every value that a call takes or gives back, frozen."""
