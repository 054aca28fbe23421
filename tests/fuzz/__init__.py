"""Damaged input for simfs: `python -m tests.fuzz --inputs 200000`.

Whatever is done to a scenario, a model, a data set, the options or the environment, simfs answers it or refuses it in
plain lines. Input number N of a seed is always the same: `--only N` shows it again.
"""
