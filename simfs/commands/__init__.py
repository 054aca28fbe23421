"""The commands of the command line, a module each; `simfs.cli` lists them."""
