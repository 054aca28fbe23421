"""Runs turned into answers: replications, statistics, calibration, tables and manifests."""
