"""Frames in, sketches out: the only room that imports pyspark."""
