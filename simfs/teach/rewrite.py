"""Turn plain methods into code that can be stopped between any two lines.

Each method of a class that derives from `simfs.teach.Lock` becomes a generator: it yields before each statement, and
each call goes through `simfs.teach.lock.call`, which waits where there is something to wait for. Lines stay.
"""

from __future__ import annotations

import ast
from typing import NoReturn, cast

from simfs.teach.lock import call

HELPER = "__simfs_call__"
"""How `call` is called in rewritten modules."""
BLOCKS = {"spin_until", "sleep"}
OPERATIONS = BLOCKS | {"load", "store", "exchange", "compare_and_swap", "fetch_add", "wake"}
"""Methods that let others come between by themselves."""


def rewritten(tree: ast.Module, file: str) -> dict[str, object]:
    """Rewrite the locks in a module in place; returns the names that the module needs. Raises SyntaxError."""
    lock_names, module_names = _imported(tree)
    if not lock_names and not module_names:
        return {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and any(
            _is_lock(base, lock_names, module_names) for base in node.bases
        ):
            lock_names.add(node.name)
            for method in node.body:
                _rewrite_method(method, file)
    ast.fix_missing_locations(tree)
    return {HELPER: call}


def _imported(tree: ast.Module) -> tuple[set[str], set[str]]:
    """The names under which a module knows the base class, and the package."""
    locks, modules = set(), set()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module == "simfs.teach":
            locks |= {"Lock"} if any(name.name == "*" for name in node.names) else set()
            locks |= {name.asname or name.name for name in node.names if name.name == "Lock"}
        elif isinstance(node, ast.ImportFrom) and node.module == "simfs":
            modules |= {name.asname or name.name for name in node.names if name.name == "teach"}
        elif isinstance(node, ast.Import):
            modules |= {name.asname or name.name for name in node.names if name.name == "simfs.teach"}
    return locks, modules


def _is_lock(base: ast.expr, locks: set[str], modules: set[str]) -> bool:
    if isinstance(base, ast.Attribute):
        return base.attr == "Lock" and ast.unparse(base.value) in modules
    return isinstance(base, ast.Name) and base.id in locks


def _rewrite_method(method: ast.stmt, file: str) -> None:
    if isinstance(method, ast.AsyncFunctionDef):
        _refuse("leave out `async`: what takes time waits by itself", method, file)
    if not isinstance(method, ast.FunctionDef) or method.name.startswith("__") or method.decorator_list:
        return
    _Method(file).rewrite(method)


def _refuse(message: str, node: ast.AST, file: str) -> NoReturn:
    line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0) + 1
    raise SyntaxError(message, (file, line, column, None))


class _Method:
    """Rewrites one method."""

    def __init__(self, file: str) -> None:
        self.file = file

    def rewrite(self, method: ast.FunctionDef) -> None:
        method.body = self._block(method.body)

    def _block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for statement in body:
            point = ast.Expr(ast.Yield(ast.Constant(int(_shares(statement)))))
            ast.copy_location(point, statement)
            ast.copy_location(point.value, statement)
            made += [ast.fix_missing_locations(point), cast(ast.stmt, self.visit(statement))]
        return made

    def visit(self, node: ast.AST) -> ast.AST:
        """Rewrite a node; blocks of statements get their points."""
        if isinstance(node, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            return node
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            return node
        if isinstance(node, ast.Yield | ast.YieldFrom | ast.Await):
            _refuse("leave out `yield` and `await`: what takes time waits by itself", node, self.file)
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Attribute)
            and node.value.attr in OPERATIONS
        ):
            _refuse(f"this does nothing; did you mean {ast.unparse(node.value)}()?", node, self.file)
        for name, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                setattr(node, name, self._block(value))
            elif isinstance(value, list):
                setattr(
                    node, name, [self.visit(each) if isinstance(each, ast.AST) else each for each in value]
                )
            elif isinstance(value, ast.AST):
                setattr(node, name, self.visit(value))
        return self._called(node) if isinstance(node, ast.Call) else node

    def _called(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and node.func.id == "super":
            return node
        helper = ast.Call(ast.Name(HELPER, ast.Load()), [node.func, *node.args], node.keywords)
        made = ast.YieldFrom(helper)
        for part in (helper.func, helper, made):
            ast.copy_location(part, node)
        return made


def _shares(statement: ast.stmt) -> bool:
    """Whether a statement itself, not its block, uses what others may change, other than by an operation on a word."""
    parts: list[ast.AST] = [
        value
        for _, field in ast.iter_fields(statement)
        for value in (field if isinstance(field, list) else [field])
        if isinstance(value, ast.AST) and not isinstance(value, ast.stmt | ast.ExceptHandler)
    ]
    return any(_uses_memory(part) for part in parts)


def _uses_memory(node: ast.AST) -> bool:
    if isinstance(node, ast.Lambda):
        return False
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in OPERATIONS:
        word = node.func.value  # which word it is does not change: self.taken.load()
        inner = word.value if isinstance(word, ast.Attribute) else word
        return any(_uses_memory(each) for each in (inner, *node.args, *node.keywords))
    if isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        return True
    return any(_uses_memory(child) for child in ast.iter_child_nodes(node))
