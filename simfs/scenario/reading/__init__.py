"""From files to a scenario: YAML with places, what is laid over it, and refusals with their line and column."""
