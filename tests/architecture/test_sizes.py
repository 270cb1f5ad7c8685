"""Everything is small enough to be read in one go. There is no list of exceptions."""

import ast

from .sources import FunctionNode, Source, refuse, sources

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 50
PUBLIC_METHODS_MAX = 12
PARAMETERS_MAX = 6
PORT_METHODS_MAX = 25

EVERYWHERE = ("src", "tests", "examples")


def test_files_have_at_most_400_lines() -> None:
    counts = [(source, len(source.text.splitlines())) for source in sources(*EVERYWHERE)]
    refuse([source.at(1, f"{count} lines") for source, count in counts if count > FILE_LINES_MAX])


def test_functions_have_at_most_50_lines() -> None:
    refuse(
        [
            source.at(function.lineno, f"{function.name} has {length} lines")
            for source in sources(*EVERYWHERE)
            for function in source.functions()
            if (length := (function.end_lineno or 0) - function.lineno + 1) > FUNCTION_LINES_MAX
        ]
    )


def test_classes_have_at_most_12_public_methods() -> None:
    refuse(
        [
            source.at(node.lineno, f"{node.name} has {count} public methods")
            for source in sources("src", "examples")
            for node in source.classes()
            if (count := len(_public_methods(node))) > PUBLIC_METHODS_MAX
        ]
    )


def test_functions_take_at_most_6_parameters() -> None:
    refuse(
        [
            source.at(function.lineno, f"{function.name} takes {count} parameters")
            for source in sources(*EVERYWHERE)
            for function, is_method in _functions_with_owner(source)
            if (count := _parameter_count(function, is_method)) > PARAMETERS_MAX
        ]
    )


def test_the_store_port_has_at_most_25_methods() -> None:
    contract = [source for source in sources("src") if source.path.parts[-2:] == ("store", "contract.py")]
    methods = [method for source in contract for node in source.classes() for method in _public_methods(node)]
    assert 0 < len(methods) <= PORT_METHODS_MAX, methods


def _public_methods(node: ast.ClassDef) -> list[str]:
    methods = (child.name for child in node.body if isinstance(child, FunctionNode))
    return [name for name in methods if not name.startswith("_")]


def _functions_with_owner(source: Source) -> list[tuple[FunctionNode, bool]]:
    """Each function with whether its first argument is bound, as `self` and `cls` are."""
    methods = {child for node in source.classes() for child in node.body if isinstance(child, FunctionNode)}
    return [(function, function in methods and not _is_static(function)) for function in source.functions()]


def _is_static(function: FunctionNode) -> bool:
    return any(isinstance(mark, ast.Name) and mark.id == "staticmethod" for mark in function.decorator_list)


def _parameter_count(function: FunctionNode, is_method: bool) -> int:
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    gathered = [argument for argument in (arguments.vararg, arguments.kwarg) if argument is not None]
    return len(named) + len(gathered) - (1 if is_method else 0)
