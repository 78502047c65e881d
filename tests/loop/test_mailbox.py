"""Messages that wait for the next request."""

import sys
from types import FrameType, TracebackType
from typing import Any

from handrail.conversation.blocks import Text
from handrail.conversation.messages import UserMessage
from handrail.loop.conversation_state import Mailbox


class PostAtEachLine:
    """Posts a message before each of the first lines of `take`, as another thread might."""

    def __init__(self, mailbox: Mailbox) -> None:
        self.posted = list[UserMessage]()
        self._mailbox = mailbox
        self._tracer = sys.gettrace()

    def __enter__(self) -> None:
        sys.settrace(self._trace)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        sys.settrace(self._tracer)

    def _trace(self, frame: FrameType, event: str, _arg: object) -> Any:
        if frame.f_code is not Mailbox.take.__code__:
            return None
        if event == "line" and len(self.posted) < 10:
            self.posted.append(UserMessage((Text(str(len(self.posted))),)))
            self._mailbox.post(self.posted[-1])
        return self._trace


def test_no_message_is_lost_that_another_thread_sends_while_messages_are_taken() -> None:
    mailbox = Mailbox()
    poster = PostAtEachLine(mailbox)

    with poster:
        taken = mailbox.take()

    assert [*taken, *mailbox.take()] == poster.posted
