"""Where and when an observation falls."""
