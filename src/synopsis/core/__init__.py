"""Shared nouns: what a sketch is asked to be, sizes, errors, and the door that bytes go through."""
