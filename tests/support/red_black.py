"""Insertions into a red-black tree as `rb_insert_color` of Linux makes them, and which lines they fetch from others."""

from __future__ import annotations

import random
from dataclasses import dataclass, field


@dataclass
class Node:
    """An inode in the tree: its number is one line, the pointers another."""

    number: int
    parent: Node | None = None
    left: Node | None = None
    right: Node | None = None
    red: bool = True
    versions: list[int] = field(default_factory=lambda: [0, 0])
    seen: dict[tuple[int, int], int] = field(default_factory=dict)


@dataclass
class Tree:
    """The tree, the CPU that works on it, and how many lines came from another."""

    root: Node | None = None
    cpu: int = 0
    moved: int = 0

    def _read(self, node: Node, line: int = 1) -> None:
        self.moved += node.seen.get((self.cpu, line)) != node.versions[line]
        node.seen[self.cpu, line] = node.versions[line]

    def _write(self, node: Node) -> None:
        self._read(node)
        node.versions[1] += 1
        node.seen[self.cpu, 1] = node.versions[1]

    def insert(self, number: int) -> None:
        """`inode_tree_add`."""
        new, parent, child = Node(number), None, self.root
        new.seen = {(self.cpu, line): 0 for line in (0, 1)}
        while child:
            parent = child
            self._read(child, 0)
            self._read(child)
            child = child.left if number < child.number else child.right
        new.parent = parent
        if parent is None:
            self.root = new
        else:
            self._write(parent)
            if number < parent.number:
                parent.left = new
            else:
                parent.right = new
        self._colour(new)

    def _colour(self, node: Node) -> None:
        while (parent := node.parent) and parent.red:
            above = parent.parent
            assert above
            self._read(above)
            uncle = above.right if parent is above.left else above.left
            if uncle:
                self._read(uncle)
            if uncle and uncle.red:
                for one, red in ((uncle, False), (parent, False), (above, True)):
                    one.red = red
                    self._write(one)
                node = above
                continue
            if (node is parent.right) == (parent is above.left):
                self._rotate(parent, node)
                parent = node
            self._rotate(above, parent)
            parent.red, above.red = False, True
            break
        assert self.root
        self.root.red = False

    def _rotate(self, top: Node, below: Node) -> None:
        if below is top.right:
            moves, top.right, below.left = below.left, below.left, top
        else:
            moves, top.left, below.right = below.right, below.right, top
        if moves:
            moves.parent = top
            self._write(moves)
        below.parent, top.parent = top.parent, below
        if below.parent is None:
            self.root = below
        else:
            self._write(below.parent)
            if below.parent.left is top:
                below.parent.left = below
            else:
                below.parent.right = below
        self._write(top)
        self._write(below)


def lines_moved(threads: int, insertions: int = 8000, in_turn: bool = False) -> float:
    """Lines that an insertion of a growing number fetches from other CPUs if threads take random or fixed turns."""
    draw, tree = random.Random(1), Tree()
    for number in range(2 * insertions):
        if number == insertions:
            tree.moved = 0
        tree.cpu = number % threads if in_turn else draw.randrange(threads)
        tree.insert(number)
    return tree.moved / insertions
