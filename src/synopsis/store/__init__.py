"""Bytes that survive: Delta tables with one commit point."""
