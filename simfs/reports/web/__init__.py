"""Reports for a browser: parts of HTML that need nothing from outside.

`page` is a whole report. `tables` makes tables of the sheets that the terminal shows; notebooks show them too.
"""
