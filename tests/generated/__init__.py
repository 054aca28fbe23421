"""Hypothesis strategies: machines, kernels, scenarios, programs in Python.

All words are those of the vocabulary, the timeline and the models that are shipped, so that new ones are drawn at once.
"""
