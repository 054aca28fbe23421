"""A real kernel with many CPUs on one: build it, run loads in it, read what they measured."""
