"""How a value that is refused is shown in the message that refuses it: on one line, short, whatever it is."""

from __future__ import annotations

LONGEST_SHOWN = 60
# Python refuses to write integers of more than 4300 digits; nobody wants to read the half of that.
LONGEST_INTEGER_BITS = 200


def shown(value: object) -> str:
    """`value` in the words of JSON. Never raises, and holds no control characters and no lone surrogates."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return repr(cut(value))
    if isinstance(value, int):
        return str(int(value)) if value.bit_length() <= LONGEST_INTEGER_BITS else "an integer of absurd length"
    if isinstance(value, float):
        return repr(float(value))
    if isinstance(value, (list, tuple)):
        return "a list"
    if isinstance(value, dict):
        return "an object"
    return f"a Python {type(value).__name__}"


def cut(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…"
