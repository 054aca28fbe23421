"""CPUs: their topology, what each of them does, and how its time is spent."""
