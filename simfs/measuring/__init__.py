"""Measure the machine this runs on, and write it down as a profile like those of `models/machines`."""
