"""What the documentation site generates: output of commands, and reference pages."""
