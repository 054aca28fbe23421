"""Experiments on scenarios: many runs that answer one question."""
