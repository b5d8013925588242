"""JSON messages that parsers read differently, or that only look unusual: one table for tests of
the rule (`racetrack/workloads/message.py`), of parsers, and of whole engines."""

import re
from dataclasses import dataclass

from racetrack.workloads.contract import SourceTopic
from racetrack.workloads.message import TEXT_BYTES

DUE_MS = 1_790_000_000_000
_ID = 2**53 + 1
_SHOP = b'{"user_id": 7, "url": "/products/1", "channel": "mail", "received_at": %d}' % DUE_MS
# Names of fields, and what ad events have instead.
_IN_ADS = {
    "user_id": "number",
    "url": "ad_id",
    "received_at": "event_time",
    r"received\u005fat": r"event\u005ftime",
    "RECEIVED_AT": "EVENT_TIME",
    "channel": "event_type",
    r"\u0063hannel": r"\u0065vent_type",
    "CHANNEL": "EVENT_TYPE",
}


@dataclass(frozen=True)
class Row:
    """A message of the shop. `field` is the field at fault, None if the message is valid. `text` is
    the channel of valid messages, and `user_id` and `due_ms` are their numbers."""

    name: str
    value: bytes
    field: str | None = None
    text: str = "mail"
    due_ms: int = DUE_MS
    user_id: int = 7

    def of(self, topic: SourceTopic) -> bytes:
        """Return the message as one of this topic."""
        if "url" in topic.fields:
            return self.value
        value = self.value
        for name, other in _IN_ADS.items():
            value = value.replace(name.encode(), other.encode())
        return value

    def field_in(self, topic: SourceTopic) -> str:
        """Return the field at fault in the message as one of this topic."""
        if "url" in topic.fields:
            return str(self.field)
        return re.sub("[a-zA-Z_]+", lambda name: _IN_ADS.get(name[0], name[0]), str(self.field))

    @property
    def is_valid(self) -> bool:
        """Whether all engines must read it alike."""
        return self.field is None


def _due(value: str | bytes) -> bytes:
    return _SHOP.replace(b"%d" % DUE_MS, value.encode() if isinstance(value, str) else value)


def _text(value: str | bytes) -> bytes:
    return _SHOP.replace(b'"mail"', value.encode() if isinstance(value, str) else value)


def _more(field: str) -> bytes:
    return _SHOP[:-1] + b", " + field.encode() + b"}"


VALID = (
    Row("as the generator writes it", _SHOP),
    Row("padding", _more('"padding": "aB_-9"')),
    Row("spaces around it", b" \t\r" + _SHOP + b" \t\r"),
    Row("a line break before it", b"\n" + _SHOP),
    Row("a line break after it", _SHOP + b"\n"),
    Row("line breaks in it", _SHOP.replace(b", ", b",\r\n  ")),
    Row("spaces before colons", _SHOP.replace(b'": ', b'" : ')),
    Row("another order", b'{"received_at": %d, %s}' % (DUE_MS, _SHOP[1:-1].rpartition(b", ")[0])),
    Row("an escape in a name", _SHOP.replace(b"received_at", rb"received\u005fat")),
    Row("escapes of ASCII", _text(rb'"\u006d\u0061il\/\"\\"'), text='mail/"\\'),
    Row("escapes of control characters", _text(r'"\b\f\n\r\t\u001f"'), text="\b\f\n\r\t\x1f"),
    Row("PostgreSQL's end of data", _text(r'"a\n\\.\nb"'), text="a\n\\.\nb"),
    Row("text as in CSV", _text(r'"a,\"b\",c"'), text='a,"b",c'),
    Row("UTF-8 of 2 to 4 bytes", _text('"é€🙂\uffff\u2028\x7f"'), text="é€🙂\uffff\u2028\x7f"),
    Row("a surrogate pair", _text(r'"\ud83d\uDE42"'), text="🙂"),
    Row("a BOM within a text", _text('"\ufeff"'), text="\ufeff"),
    Row("an empty text", _text('""'), text=""),
    Row("a text like null", _text('"null"'), text="null"),
    Row("spaces in a text", _text('"  a "'), text="  a "),
    Row("the longest text", _text('"' + TEXT_BYTES * "a" + '"'), text=TEXT_BYTES * "a"),
    Row("an id above 2^53", _SHOP.replace(b"7", b"%d" % _ID, 1), user_id=_ID),
    Row("a negative id", _SHOP.replace(b"7", b"-%d" % _ID, 1), user_id=-_ID),
    Row("an early time", _due("5"), due_ms=5),
    Row("additional null", _more('"x": null')),
    Row("additional boolean", _more('"x": true')),
    Row("additional text", _more('"x": "\\n\u00e9 \\"y\\": {}"')),
    Row("additional integer", _more('"x": 123456789012345678')),
    Row("additional number with an exponent", _more('"x": -1.5E+30')),
    Row("the name of a column", _more('"partition": 99, "offset": 0')),
)
INVALID = (
    Row("1e3", _due("1e3"), "received_at"),
    Row("1.0", _due(f"{DUE_MS}.0"), "received_at"),
    Row("leading zeros", _due(f"00{DUE_MS}"), ""),
    Row("minus zero", _due("-0"), "received_at"),
    Row("zero", _due("0"), "received_at"),
    Row("a negative time", _due("-1"), "received_at"),
    Row("NaN", _due("NaN"), ""),
    Row("Infinity", _due("-Infinity"), ""),
    Row("2^63", _due(str(2**63)), "received_at"),
    Row("-2^63", _due(str(-(2**63))), "received_at"),
    Row("2^64 + a time", _due(str(2**64 + DUE_MS)), "received_at"),
    Row("a time after 2262", _due(str(2**53 + 1)), "received_at"),
    Row("5,000 digits", _due("1" * 5000), "received_at"),
    Row("text for a number", _due(f'"{DUE_MS}"'), "received_at"),
    Row("null for a number", _due("null"), "received_at"),
    Row("a digit of another script", _due("١"), ""),
    Row("null for a text", _text("null"), "channel"),
    Row("a number for a text", _text("7"), "channel"),
    Row("half a surrogate pair", _text(r'"\ud83d"'), "channel"),
    Row("a pair the wrong way round", _text(r'"\ude42\ud83d"'), "channel"),
    Row("U+0000", _text(r'"a\u0000b"'), "channel"),
    Row("a raw control character", _text(b'"a\tb"'), ""),
    Row("a raw line break", _text(b'"a\nb"'), ""),
    Row("an unknown escape", _text(rb'"\a"'), ""),
    Row("single quotes", _text("'mail'"), ""),
    Row("bytes that are not UTF-8", _text(b'"\xff"'), ""),
    Row("overlong UTF-8", _text(b'"\xc0\xaf"'), ""),
    Row("a surrogate in UTF-8", _text(b'"\xed\xa0\xbd"'), ""),
    Row("too long a text", _text('"' + (TEXT_BYTES + 1) * "a" + '"'), "channel"),
    Row("a BOM", b"\xef\xbb\xbf" + _SHOP, ""),
    Row("UTF-16", _SHOP.decode().encode("utf-16-le"), ""),
    Row("repeated name, same value", _more(f'"received_at": {DUE_MS}'), "received_at"),
    Row("repeated name, other value", _more('"channel": "other"'), "channel"),
    Row("repeated name, escaped", _more(r'"\u0063hannel": "other"'), "channel"),
    Row("repeated additional name", _more('"x": 1, "x": 2'), "x"),
    Row("a name in capitals", _SHOP.replace(b"received_at", b"RECEIVED_AT"), "received_at"),
    Row("also a name in capitals", _more('"CHANNEL": "other"'), "CHANNEL"),
    Row("a name with a space", _SHOP.replace(b"received_at", b"received_at "), "received_at"),
    Row("missing number", _SHOP.replace(b', "received_at": %d' % DUE_MS, b""), "received_at"),
    Row("missing text", _SHOP.replace(b'"channel": "mail", ', b""), "channel"),
    Row("only one field", b'{"user_id": 7}', "url"),
    Row("additional object", _more('"x": {"received_at": 1}'), "x"),
    Row("deep", _more('"x": ' + 500 * "[" + 500 * "]"), "x"),
    Row("very deep", _more('"x": ' + 100_000 * "[" + 100_000 * "]"), ""),
    Row("additional number, too large", _more('"x": 1e400'), "x"),
    Row("additional number, too long", _more('"x": ' + 2000 * "1"), "x"),
    Row("additional U+0000", _more(r'"x": "\u0000"'), "x"),
    Row("additional half of a pair", _more(r'"x": "\udc00"'), "x"),
    Row("a name with quotes", _more(r'"\"received_at": 1111111111111'), '"received_at'),
    Row("an empty name", _more('"": 1'), ""),
    Row("a long name", _more(f'"{60_000 * "a"}": 1'), f"{58 * 'a'}…"),
    Row("a comma at the end", _SHOP[:-1] + b",}", ""),
    Row("a comment", _SHOP + b" // x", ""),
    Row("NUL bytes after it", _SHOP + b"\0\0", ""),
    Row("two objects", _SHOP + _SHOP, ""),
    Row("two objects in two lines", _SHOP + b"\n" + _SHOP, ""),
    Row("another row of kcat's", _SHOP + b"\n0\x1f0\x1f0\x1f%d\x1f%s" % (len(_SHOP), _SHOP), ""),
    Row("not closed", _SHOP[:-1], ""),
    Row("a form feed", b"\f" + _SHOP, ""),
    Row("a top-level array", b"[" + _SHOP + b"]", ""),
    Row("null", b"null", ""),
    Row("no value", b"", ""),
    Row("a line break only", b"\n", ""),
    Row("plain text", b"hello", ""),
)
ROWS = VALID + INVALID
