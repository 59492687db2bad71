"""A store has every method of the interface, from one of its parts, with the signature that the interface declares."""

from __future__ import annotations

import inspect

import pytest

from queuectl.store.composed import INTERFACE, owner
from queuectl.store.protocol import Store


def names(function: object) -> list[tuple[str, inspect._ParameterKind, bool]]:
    """The parameters without self: their names and kinds, and whether they may be omitted."""
    found = inspect.signature(function).parameters.values()  # type: ignore[arg-type]
    return [(one.name, one.kind, one.default is not inspect.Parameter.empty) for one in found if one.name != "self"]


@pytest.mark.parametrize("method", [name for name in INTERFACE if callable(getattr(Store, name))])
def test_a_part_implements_the_method_as_declared(store: Store, method: str) -> None:
    part = owner(store.parts, method)
    others = [one for one in store.parts[:-1] if one is not part and hasattr(one, method)]
    assert names(getattr(part, method)) == names(getattr(Store, method))
    assert others == []
