"""Cache lines and caches."""
