"""A time line as a picture, as a fragment of a page, and in a sentence."""
