"""`simfs lab`: explore scenarios in a browser."""

from __future__ import annotations

from typing import Annotated

import typer

from simfs.commands.errors import plain_errors, refused


def lab(
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="N", help="Port to listen on; 0 is any free port.")
    ] = 0,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open a browser with the page.")
    ] = True,
) -> None:
    """Explore scenarios with sliders in a browser. The curve and the locks follow the sliders; Ctrl-C ends it.

    The server listens on 127.0.0.1 only. It answers only requests with the token of the printed address.
    """
    with plain_errors():
        import webbrowser

        from simfs.reports.web.gallery import Gallery

        try:
            gallery = Gallery(port)
        except OSError as problem:
            raise refused(f"--port {port}: {problem.strerror}") from None
        typer.echo(gallery.url)
        if browser:
            webbrowser.open(gallery.url)
        with gallery:
            try:
                gallery.serve_forever()
            except KeyboardInterrupt:
                typer.echo("ended", err=True)
