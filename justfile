# Everyday commands; `just` alone lists them. Each is one line that can be typed as well.
_:
    @just --list

# The fast tests: a minute on two CPUs
fast:
    python -m pytest -m "not slow" --durations=5

# Format, lint, types
check:
    ruff check . && ruff format --check . && mypy && python -m mypy.stubtest simfs._engine --mypy-config-file .ci/stubtest.ini && cd engine && cargo fmt --all --check && cargo clippy --locked --workspace --all-targets --quiet -- -D warnings

# Everything that CI runs, some fifteen minutes
full:
    .ci/run

# The two machines compared on 2,000 drawn scenarios, some twenty minutes
agree:
    python -m tests.agree --scenarios 2000

# The documentation site, in docs/_build
docs:
    sphinx-build -j auto -W --keep-going -q docs docs/_build && python docs/check_links.py docs/_build

# The engine for browsers, in engine/target (once: rustup target add wasm32-unknown-unknown)
web:
    cd engine && cargo build --locked --profile web -p simfs-web --target wasm32-unknown-unknown

# The lock laboratory: one page, lock-lab.html, which needs nothing else
lab: web
    python -m simfs.reports.lab lock-lab.html

# All predictions again, and the numbers on their pages
predictions:
    simfs validate --out results/validate && python docs/predictions.py results/validate

# Faults put into a copy: which of them no test notices
mutants *OPTIONS:
    python tools/mutants.py {{OPTIONS}}

# Speed, beside a bare loop and SimPy
bench:
    python benchmarks/lock_cycle.py && python benchmarks/scaling.py

# A wheel whose engine is optimised by a profile (once: pip install 'maturin>=1.13' and rustup component add llvm-tools)
wheel-pgo:
    maturin build --release --locked --pgo --out dist

# Run a load in a real kernel with 24 virtual CPUs (docs/laboratory.md): just emulate compile
emulate LOAD *OPTIONS:
    python tools/emulated-kernel/emulate.py {{LOAD}} {{OPTIONS}}
