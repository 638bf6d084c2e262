"""Estimates in NumPy alone, path by path and bin by bin: the oracle of what `estimate` does in machine code."""
