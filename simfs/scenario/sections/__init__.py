"""The sections of a scenario, each a model with its keys, types and limits, and what they are made of."""
