"""Traces of a run, for people and for the viewers that they know."""
