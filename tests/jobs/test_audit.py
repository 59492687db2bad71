"""How entries of the audit log are serialized."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from queuectl.jobs.audit import Act, Actor, alike
from queuectl.store.transactions import audit_values

ALICE = Actor(1000, "alice", "box", "queuectl")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(VALUES)
def test_an_entry_holds_its_values_as_json(value: object) -> None:
    row = audit_values(ALICE, Act("edit", ["j"], {"x": value}, None), at_ms=5)
    assert json.loads(row["before"]) == {"x": value}
    assert json.loads(row["actor"]) == ALICE._asdict()
    assert (row["at"], row["action"], json.loads(row["targets"]), row["after"]) == (5, "edit", ["j"], None)


def test_a_value_that_all_targets_share_is_stored_once() -> None:
    assert alike({"a": 1, "b": 1}) == 1
    assert alike({"a": 1, "b": 2}) == {"a": 1, "b": 2}


def test_an_actor_is_shown_by_user_or_uid_and_by_token() -> None:
    assert str(ALICE) == "alice@box"
    assert str(ALICE._replace(user=None, token="ci")) == "1000@box (ci)"
