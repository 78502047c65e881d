"""Which of two modes lets less pass, and that a wish for one never widens."""

from hypothesis import given
from hypothesis import strategies as st

from handrail.permissions.modes import MODES, STRICTNESS, narrow_mode, stricter

ANY = st.sampled_from([*MODES, "manual"])


@given(ANY, st.one_of(ANY, st.just("")))
def test_a_wish_for_a_mode_never_widens_and_a_stricter_one_is_granted(mode: str, wish: str) -> None:
    made = narrow_mode(mode, wish)

    assert not stricter(mode, made)
    assert not wish or not stricter(wish, made)


def test_every_mode_has_its_place() -> None:
    assert sorted(STRICTNESS) == sorted(MODES)
