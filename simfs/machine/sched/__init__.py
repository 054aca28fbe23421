"""The scheduler: which task runs where, and when."""
