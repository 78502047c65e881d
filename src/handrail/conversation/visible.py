"""Text that a person decides by: nothing in it may be hidden."""

from handrail.conversation.plain import plain

UNSEEN = (0xA0, 0xAD, 0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180E, *range(0x200B, 0x200E), 0x2028, 0x2029)
UNSEEN_TOO = (*range(0x2060, 0x2065), 0x3164, 0xFEFF, 0xFFA0, *range(0xE0000, 0xE0080))
INVISIBLE = {code: f"<U+{code:04X}>" for code in (*UNSEEN, *UNSEEN_TOO)}


def visible(text: str) -> str:
    """The text with characters that cannot be seen made visible."""
    return plain(text.translate(INVISIBLE))
