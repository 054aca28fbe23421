"""Figures for papers and screens: what each command draws, and how all of them look."""
