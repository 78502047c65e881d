"""
Guesses the encoding of a text that is neither UTF-8 nor Unicode with a byte order mark.

Bytes of one East Asian encoding are often valid in another, so validity is not enough: a guess counts if a good part of
its characters are among the most common of its language. Then charset-normalizer is asked, if installed. Any other text
counts as Western European, where every byte is a character.
"""

import re
from importlib.util import find_spec
from typing import TYPE_CHECKING
from unicodedata import category

from handrail.lazy import lazy

if TYPE_CHECKING:
    import charset_normalizer
else:
    charset_normalizer = lazy("charset_normalizer")

SAMPLE = 64 * 1024
LIKELY = 0.25
KANA = frozenset(map(chr, range(0x3041, 0x30FF)))
HANZI = frozenset(
    "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里用道行所然家种事成方多经么去法学如"
    "都同现当没动面起看定天分还进好小部其些主样理心她本前开但因只从想实日军者意无力它与长把机十民第公此已工使情明性知全三又关点正业外将两高"
    "间由问很最重并物手应战向头文体政美相见被利什二等产或新己制身果加西斯月话合回特代内信表化老给世位次度门任常先海通教儿原东声提立及比员"
    "解水名真论处走义各入几口认条平系气题活更别打女变四神总何电数安少报才结反受目太量再感建务做接必场件计管期市直德资命山金指许统区保至队形"
    "社便空决治展马科司五基眼书非则听白却界达光放强即像难且权思王象完设式色路记南品住告类求据程北边死张该交规万取拉格望觉术领共确传师观清"
    "今切院让识候带导争运，。、；：？！“”（）《》"
)
HANGUL = frozenset(
    "이다는의에을가고하로지은한를도사나자서기시리어인대스아일라해정수그들었있과게부만전여주보상장으원니제성오것면동구안말때우비신국마조세공연문교람더"
    "무소경유없모당거화학발방관생위실선각물내야요개중용노같저와진계음트했미재년치단산분결운행양적번할름법금회등통물입출녕까바반민영강차식된될려러히"
)
WESTERN = frozenset(
    "äöüßÄÖÜẞéèêëàâîïôûùçÉÈÊËÀÂÎÏÔÛÙÇœŒñÑáíóúÁÍÓÚ¿¡åÅæÆøØãõÃÕìòÌÒýÝðÐþÞºª–—‘’“”„‚…•€£§©®°«»·´²³½¼¾±×÷µ¶¢¥™‹›†‡\xa0\xad"
)
HIGH = re.compile(rb"[\x80-\xff]")
# of two that score the same the first is taken: what GBK does not have, its programs cannot read
COMMON = {"cp932": KANA, "euc_jp": KANA, "gbk": HANZI, "gb18030": HANZI, "cp949": HANGUL}
ALL_COMMON = KANA | HANZI | HANGUL
MOST_BYTES = {"cp932": 2, "euc_jp": 3, "gbk": 2, "gb18030": 4, "cp949": 2}
SINGLE_BYTE = frozenset(
    "cp1250 cp1251 cp1252 cp1253 cp1254 cp1255 cp1256 cp1257 cp1258 iso8859_1 iso8859_2 iso8859_5 iso8859_7 iso8859_9"
    " iso8859_15 koi8_r koi8_u cp437 cp850 cp852 cp866 mac_roman mac_cyrillic".split(" ")
)


def guess_encoding(data: bytes) -> str:
    """The name of the most likely codec. There is always one."""
    sample = _sample(data)
    scores = {name: _score(sample, name) for name in COMMON}
    scores |= {name: _utf16_score(data[: SAMPLE & ~1], name) for name in ("utf-16-le", "utf-16-be")}
    best = max(scores, key=lambda name: scores[name])
    if scores[best] >= LIKELY:
        return best
    return (not _is_western(sample) and _normalizer(sample)) or _western(sample)


def first_high(data: bytes) -> int:
    """The position of the first byte that is not ASCII; 0 if there is none."""
    found = HIGH.search(data)
    return found.start() if found else 0


def _sample(data: bytes) -> bytes:
    """Whole lines, starting with the first one that is not ASCII."""
    high = first_high(data)
    return data[data.rfind(b"\n", max(0, high - SAMPLE), high) + 1 : high + SAMPLE]


def _score(sample: bytes, name: str) -> float:
    """The share of common characters among those that are not ASCII; 0 if the bytes are not valid."""
    for cut in range(MOST_BYTES[name]):  # the sample may end within a character
        try:
            text = sample[: len(sample) - cut].decode(name)
        except UnicodeDecodeError:
            continue
        wide = [char for char in text if char > "\x7f"]
        return sum(char in COMMON[name] for char in wide) / len(wide) if wide else 0.0
    return 0.0


def _utf16_score(sample: bytes, name: str) -> float:
    try:
        return written_share(sample.decode(name))
    except UnicodeDecodeError:
        return 0.0


def written_share(text: str) -> float:
    """The share of common characters in a text; 0 if more than a few are not characters at all."""
    odd = sum(category(char) in ("Cc", "Cn", "Co", "Cs") and char not in "\t\n\r\f" for char in text)
    if not text or odd * 50 > len(text):
        return 0.0
    return sum("\t" <= char <= "\u04ff" or char in ALL_COMMON for char in text) / len(text)


def _is_western(sample: bytes) -> bool:
    """Whether the sample is mostly ASCII and the rest are letters and signs of Western Europe."""
    wide = [char for char in sample.decode("cp1252", "replace") if char > "\x7f"]
    return len(wide) * 2 < len(sample) and sum(char in WESTERN for char in wide) >= 0.9 * len(wide)


def _western(sample: bytes) -> str:
    """cp1252 uses most control characters of Latin-1 for letters and quotes, but not these five."""
    return "iso8859_1" if any(byte in b"\x81\x8d\x8f\x90\x9d" for byte in sample) else "cp1252"


def _normalizer(sample: bytes) -> str:
    if find_spec("charset_normalizer") is None:
        return ""
    wanted = sorted(SINGLE_BYTE)
    found = charset_normalizer.from_bytes(sample, cp_isolation=wanted).best()
    return found.encoding if found is not None and found.encoding in SINGLE_BYTE else ""
