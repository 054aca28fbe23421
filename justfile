# Run a load in a real kernel with 24 virtual CPUs (docs/laboratory.md): just emulate compile
emulate LOAD *OPTIONS:
    python tools/emulated-kernel/emulate.py {{LOAD}} {{OPTIONS}}
