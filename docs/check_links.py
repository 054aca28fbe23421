"""Check the links of the built site: `python docs/check_links.py docs/_build`. What leads outside is not followed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The links of a page and the places in it that a link may lead to."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()
        self.feed(file.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take what a tag names and what it points at."""
        for name, value in attrs:
            if name == "id" and value:
                self.places.add(value)
            elif name in ("href", "src") and value:
                self.links.append(value)


def broken(site: Path) -> Iterator[str]:
    """Say which links lead to no file or no place."""
    pages = {file.resolve(): Page(file) for file in site.rglob("*.html")}
    for file, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            place = unquote(parts.fragment)
            if not target.exists():
                yield f"{file.relative_to(site.resolve())}: {link}: no such file"
            elif place and target in pages and place not in pages[target].places:
                yield f"{file.relative_to(site.resolve())}: {link}: no such place"


def main() -> int:
    """Print what is broken; the exit code."""
    site = Path(sys.argv[1])
    found = sorted(set(broken(site)))
    print("\n".join(found) or f"{len(list(site.rglob('*.html')))} pages, no broken link")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
