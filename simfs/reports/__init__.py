"""Results for reading: terminal tables, figures, and files."""
