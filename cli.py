"""Start simfs from a checkout: `python cli.py run compile-24`."""

from simfs.cli import main

if __name__ == "__main__":
    main()
