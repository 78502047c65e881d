"""Big results: whole on disk for their owner, in part for the model, and the same bytes ever after."""

import os
import resource
import signal
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.conversation.blocks import Document, Image, ResultBlock, Text
from handrail.dispatch.results import DAY, ResultLimits, ResultStore
from handrail.testing import GatedTool
from handrail.tools.context import ToolContext
from handrail.tools.outcome import Outcome
from handrail.tools.output import Output
from tests.dispatch.turn import outcome_of, use

BIG = "".join(f"line {n}\n" for n in range(10_000))
LIMIT = 5_000


def preview(store: ResultStore, call_id: str = "1", text: str = BIG, limit: int = LIMIT) -> str:
    [block] = store.fit(call_id, (Text(text),), limit)
    assert isinstance(block, Text)
    return block.text


def files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.txt"))


class Big(GatedTool):
    """Says a lot."""

    async def call(self, args: Any, ctx: ToolContext) -> Output:
        return Output(text=BIG)


async def big_outcome(folder: Path, max_result_chars: int | None) -> Outcome:
    tool = Big()
    tool.max_result_chars = max_result_chars
    return await outcome_of(tool, use("1"), store=ResultStore(folder))


class Pictures(GatedTool):
    """Shows images and texts."""

    blocks: tuple[ResultBlock, ...] = ()

    async def call(self, args: Any, ctx: ToolContext) -> Output:
        return Output(blocks=self.blocks)


@pytest.mark.anyio
@pytest.mark.proves("R6")
@pytest.mark.parametrize(
    ("blocks", "kept", "note"),
    [
        pytest.param((Image("A" * 9_000_000, "image/png"),) * 3, 3, "", id="within the limit"),
        pytest.param((Image("A" * 9_000_000, "image/png"),) * 5, 3, "2 images or documents are left out", id="bytes"),
        pytest.param((Document("", "x", "t" * 40_000_000),), 0, "1 images or documents are left out", id="a title"),
        pytest.param((Image("A", "image/png"),) * 5_000, 100, "4,900 images or documents are left out", id="many"),
        pytest.param((Text(""),) * 1_000_000, 0, "The result is too large: 999,999 characters", id="empty texts"),
    ],
)
async def test_a_result_holds_no_more_media_than_a_request_can(
    blocks: tuple[ResultBlock, ...], kept: int, note: str, tmp_path: Path
) -> None:
    tool = Pictures()
    tool.blocks = blocks
    outcome = await outcome_of(tool, use("1"), store=ResultStore(tmp_path))

    assert sum(not isinstance(block, Text) for block in outcome.result.content) == kept
    assert note in outcome.result.text
    assert bool(note) == bool(outcome.result.text)


@pytest.mark.anyio
@pytest.mark.proves("I1", "I4", "R6", "A21")
async def test_a_result_over_its_tools_limit_is_stored_whole_and_shown_in_part(tmp_path: Path) -> None:
    outcome = await big_outcome(tmp_path / "run", max_result_chars=LIMIT)

    [stored] = files(tmp_path)
    assert stored.read_text() == BIG
    assert str(stored) in outcome.result.text
    assert len(outcome.result.text) < LIMIT
    assert not outcome.result.is_error


@pytest.mark.anyio
@pytest.mark.proves("I1")
@pytest.mark.parametrize(("limit", "kept"), [(len(BIG), True), (len(BIG) - 1, False)])
async def test_a_result_of_exactly_the_limit_is_left_alone(tmp_path: Path, limit: int, kept: bool) -> None:
    outcome = await big_outcome(tmp_path / "run", max_result_chars=limit)

    assert (outcome.result.text == BIG) == kept
    assert (tmp_path / "run").exists() != kept  # the folder is made when it is needed


@pytest.mark.anyio
@pytest.mark.proves("I3")
async def test_a_tool_that_bounds_itself_is_never_stored(tmp_path: Path) -> None:
    outcome = await big_outcome(tmp_path / "run", max_result_chars=None)

    assert outcome.result.text == BIG
    assert not (tmp_path / "run").exists()


@pytest.mark.proves("I5")
def test_a_preview_starts_with_the_notice_and_shows_head_and_tail_with_sizes(tmp_path: Path) -> None:
    text = preview(ResultStore(tmp_path / "run"))

    tag, notice, *rest = text.splitlines()
    assert tag == "<persisted-output>"
    assert notice == (
        f"The result is too large: {len(BIG):,} characters in 10,001 lines. "
        f"The whole text is in {files(tmp_path)[0]}. Use Read with offset and limit, or Grep, for the part you "
        "need."
    )
    assert rest[:2] == ["First 1,200 characters:", "line 0"]
    assert f"[{len(BIG) - 2_000:,} characters left out]" in rest
    assert text.endswith("line 9999\n\n</persisted-output>")


@pytest.mark.proves("I6")
def test_what_was_replaced_once_is_replaced_by_the_same_bytes_whatever_happened_since(tmp_path: Path) -> None:
    store = ResultStore(tmp_path / "run", ResultLimits(quota_bytes=len(BIG)))
    first = preview(store)
    files(tmp_path)[0].write_text("gone")

    assert preview(store) == first
    assert store.replaced == {"1": first}


@pytest.mark.proves("I6", "I4")
def test_an_id_that_is_used_twice_does_not_overwrite_what_an_earlier_preview_points_to(tmp_path: Path) -> None:
    """Some models number their calls anew in every answer."""
    store = ResultStore(tmp_path / "run")
    one, other = preview(store, "call_0", BIG), preview(store, "call_0", BIG[::-1])

    assert one != other
    assert sorted(path.read_text() for path in files(tmp_path)) == sorted([BIG, BIG[::-1]])


@pytest.mark.proves("F9", "I4")
def test_images_stay_in_the_conversation_when_the_text_beside_them_is_replaced(tmp_path: Path) -> None:
    picture = Image("aGk=", "image/png")
    blocks: tuple[ResultBlock, ...] = (Text(BIG), picture, Text("end"))

    first, *others = ResultStore(tmp_path / "run").fit("1", blocks, LIMIT)

    assert others == [picture]
    assert isinstance(first, Text)
    assert files(tmp_path)[0].read_text() == BIG + "\nend"


@pytest.mark.proves("I9")
def test_the_folder_and_its_files_are_for_their_owner_only(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir(mode=0o755)  # somebody was careless before
    was = os.umask(0)
    try:
        preview(ResultStore(folder))
    finally:
        os.umask(was)

    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [stat.S_IMODE(path.stat().st_mode) for path in files(folder)] == [0o600]


@pytest.mark.proves("I9")
def test_what_is_older_than_the_retention_time_is_removed_in_the_folders_of_all_runs(tmp_path: Path) -> None:
    old, new = tmp_path / "earlier" / "old.txt", tmp_path / "earlier" / "new.txt"
    old.parent.mkdir()
    for path, days in ((old, 31), (new, 29)):
        path.write_text("x")
        os.utime(path, (1_000_000_000 - days * DAY,) * 2)

    preview(ResultStore(tmp_path / "run", now=lambda: 1_000_000_000))

    assert (old.exists(), new.exists()) == (False, True)


@pytest.mark.proves("I9", "R6")
def test_a_full_quota_loses_the_rest_and_says_so(tmp_path: Path) -> None:
    store = ResultStore(tmp_path / "run", ResultLimits(quota_bytes=len(BIG) + 10))
    preview(store, "1")

    text = preview(store, "2", "x" * LIMIT * 2)

    assert "The rest is lost: the folder for big results is full" in text
    assert "Repeat the call with a narrower question." in text
    assert len(files(tmp_path)) == 1


@pytest.mark.proves("I9")
def test_the_quota_holds_when_several_threads_store_at_once(tmp_path: Path) -> None:
    store = ResultStore(tmp_path / "run", ResultLimits(quota_bytes=3 * len(BIG)))
    threads = [threading.Thread(target=preview, args=(store, str(n))) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(files(tmp_path)) == 3
    assert len(store.replaced) == 8


@pytest.fixture
def no_file_over_4_kb() -> Iterator[None]:
    """As on a full disk, writing fails somewhere in the middle."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.proves("I4", "P8")
@pytest.mark.usefixtures("no_file_over_4_kb")
def test_when_the_disk_is_full_no_half_file_stays_and_the_model_is_told(tmp_path: Path) -> None:
    text = preview(ResultStore(tmp_path / "run"))

    assert "The rest is lost: writing it to disk failed (File too large)." in text
    assert files(tmp_path) == []


@pytest.mark.proves("I9", "P8")
def test_a_folder_that_cannot_be_made_costs_the_rest_but_not_the_result(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file where a folder should be")

    text = preview(ResultStore(tmp_path / "state" / "run"))

    assert "The rest is lost: writing it to disk failed (Not a directory)." in text
    assert "line 0" in text


@pytest.mark.proves("I9")
def test_a_link_in_the_place_of_the_file_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    preview(ResultStore(tmp_path / "run"))
    [place] = files(tmp_path)
    place.unlink()
    place.symlink_to(victim)

    preview(ResultStore(tmp_path / "run"))

    assert victim.read_text() == "precious"
    assert not place.is_symlink()
    assert place.read_text() == BIG


@pytest.mark.proves("I9")
@given(
    st.text(max_size=40) | st.sampled_from(["../../etc/passwd", "/etc/passwd", "a\0b", "x" * 5_000, ".", "", "\ud800"])
)
def test_whatever_a_model_calls_its_call_the_file_lies_in_the_folder(
    tmp_path_factory: pytest.TempPathFactory, call_id: str
) -> None:
    root = tmp_path_factory.mktemp("hostile")

    text = preview(ResultStore(root / "run"), call_id)

    [stored] = files(root)
    assert stored.parent == root / "run"
    assert str(stored) in text


@pytest.mark.proves("I4")
def test_text_that_is_not_quite_unicode_is_stored_all_the_same(tmp_path: Path) -> None:
    text = "caf\udce9 " * LIMIT
    preview(ResultStore(tmp_path / "run"), "1", text)

    assert files(tmp_path)[0].read_bytes() == text.encode("utf-8", "surrogatepass")


@pytest.mark.proves("I5", "R6")
@given(st.text(alphabet="ab\n", min_size=1), st.integers(0, 20_000), st.integers(0, 4_000))
def test_a_preview_is_bounded_and_true_for_any_text_and_limit(
    tmp_path_factory: pytest.TempPathFactory, piece: str, repeat: int, limit: int
) -> None:
    text = piece * (repeat // len(piece) + 1)
    store = ResultStore(tmp_path_factory.mktemp("any") / "run")

    [block] = store.fit("1", (Text(text),), limit)

    assert isinstance(block, Text)
    if len(text) <= limit:
        assert block.text == text
    else:
        assert len(block.text) < limit + 1_000
        assert f"{len(text):,} characters in {text.count(chr(10)) + 1:,} lines" in block.text
