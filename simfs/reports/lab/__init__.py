"""The lock laboratory: one page in which the engine runs as WebAssembly, without Python and without a network."""
