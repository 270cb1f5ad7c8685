"""What users may import: the names of `coatcheck`, listed once, sorted and complete."""

import ast

import coatcheck

from .sources import PACKAGE, refuse, sources


def test_exported_names_are_sorted_complete_and_there() -> None:
    root = next(source for source in sources("src") if source.path == PACKAGE / "__init__.py")
    imports = [node for node in root.tree.body if isinstance(node, ast.ImportFrom)]
    imported = [alias.asname or alias.name for node in imports for alias in node.names]
    assert coatcheck.__all__ == sorted(imported)
    assert [name for name in coatcheck.__all__ if not hasattr(coatcheck, name)] == []


def test_only_the_root_lists_its_names() -> None:
    refuse(
        [
            source.at(node.lineno, "__all__ outside the package's root")
            for source in sources("src")
            if source.path != PACKAGE / "__init__.py"
            for node in ast.walk(source.tree)
            if isinstance(node, ast.Name) and node.id == "__all__"
        ]
    )


def test_every_public_name_says_what_it_is() -> None:
    assert [name for name in coatcheck.__all__ if not (getattr(coatcheck, name).__doc__ or "").strip()] == []


def test_the_package_is_typed() -> None:
    assert (PACKAGE / "py.typed").is_file()
