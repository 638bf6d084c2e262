"""What adds up: counts, moments and comoments of strands, the tree they form, the layout and its planner."""
