"""Start simfs as a module: `python -m simfs run compile-24`."""

from simfs.cli import main

if __name__ == "__main__":
    main()
