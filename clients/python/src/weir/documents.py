"""The checks of protocol 1 for weir.testing: what Weir refuses is refused with the same members, and in the same words."""
from __future__ import annotations

import json
import re
from typing import Any, Callable, Dict, List, Optional, Tuple

from .errors import Invalid

TEN_YEARS_S, YEAR_2100_S = 315532800, 4102444800
JOB_BYTES, BULK_BYTES, BULK_LINES, DEPTH = 1 << 20, 2 << 20, 1000, 511
NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


class _Object(Dict[str, Any]):
    twice: Optional[str] = None


def _pairs(pairs: List[Tuple[str, Any]]) -> _Object:
    made = _Object(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        made.twice = next(name for i, name in enumerate(names) if name in names[:i])
        _check_texts([value for _, value in pairs], DEPTH + 1)  # those, too, that a later one hides
    return made


def _integer(digits: str) -> int:
    if len(digits) > 20 or not -(1 << 63) <= int(digits) < 1 << 63:
        raise ValueError("an integer that does not fit 64 bits")
    return int(digits)


def _float(digits: str) -> float:
    if float(digits) in (float("inf"), float("-inf")):
        raise ValueError("a number too large for a double")
    return float(digits)


def _constant(word: str) -> Any:
    raise ValueError("no value begins")


def _check_texts(value: Any, depth: int) -> None:
    if isinstance(value, str):
        if "\0" in value:
            raise ValueError("\\u0000 is not supported")
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError("half a surrogate pair") from None
    elif isinstance(value, (dict, list)):
        if depth == 0:
            raise ValueError("nested too deep")
        for one in value:
            _check_texts(one, depth - 1)
        for one in value.values() if isinstance(value, dict) else ():
            _check_texts(one, depth - 1)


def read_json(text: str, what: str, depth: int) -> Any:
    """Reads JSON as Weir does. what: the beginning of the refusal."""
    try:
        value = json.loads(text, object_pairs_hook=_pairs, parse_int=_integer, parse_float=_float, parse_constant=_constant)
        _check_texts(value, depth)
        return value
    except (ValueError, RecursionError) as e:
        raise Invalid(f"{what}: {e}") from None


def read_object(text: str) -> Dict[str, Any]:
    if len(text.encode()) > JOB_BYTES:
        raise Invalid(f"the document has more than {JOB_BYTES} bytes")
    value = read_json(text, "not JSON", DEPTH + 1)
    if not isinstance(value, _Object):
        raise Invalid("not a JSON object")
    if value.twice:
        raise Invalid("not JSON: a member comes twice", value.twice)
    return value


# ---- Members: a check and what it must be


def _number(low: float, high: float) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, (int, float)) and not isinstance(value, bool) and low <= value <= high


def _whole(low: int, high: int) -> Tuple[Callable[[Any], bool], str]:
    return (lambda value: type(value) is int and low <= value <= high), f"a whole number from {low} to {high}"


def _text(check: Callable[[str], Any], must_be: str) -> Tuple[Callable[[Any], bool], str]:
    return (lambda value: isinstance(value, str) and bool(check(value))), must_be


_NAME = _text(NAME.fullmatch, "a name: 1 to 128 of A-Z a-z 0-9 _ . -")
_ANY = (lambda value: True), "any value"
_TRUE = (lambda value: value is True), "true"


def _cost(least: int) -> Tuple[Callable[[Any], bool], str]:
    number, must_be = _whole(least, 10**9)
    part, name = _whole(0, 10**9)[0], re.compile(r"(?!(?:plain|jobs)$)[a-z][a-z0-9_]{0,31}")

    def fits(value: Any) -> bool:
        if not isinstance(value, dict):
            return number(value)
        names = [one for one in value if one != "plain"]
        return (bool(value) and not getattr(value, "twice", "") and len(names) <= 8 and all(name.fullmatch(one) and part(value[one]) for one in names)
                and number(value.get("plain", least)))

    return fits, must_be + ', or by up to 8 names, {"tokens": 900}'


_COST = _cost(1)

JOB = {
    "type": _NAME, "id": _NAME, "args": _ANY, "key": _NAME, "cost": _COST, "max_attempts": _whole(1, 10**6),
    "timeout": (_number(5e-324, TEN_YEARS_S), "a number of seconds above 0, at most ten years"),
    "traceparent": _text(_TRACEPARENT.fullmatch, "VERSION-TRACE-SPAN-FLAGS in lower-case hex"), "meta": _ANY,
}
ENQUEUE = {
    **JOB, "queue": _NAME, "in": (_number(0, YEAR_2100_S - 1e-6), "a number of seconds, before the year 2100"),
    "at": (_number(0, YEAR_2100_S - 1e-6), "seconds since 1970, before the year 2100"), "unique": _NAME,
    "unique_until": (
        lambda value: value in ("end", "start") or not isinstance(value, str) and _number(0.001, TEN_YEARS_S)(value),
        '"end", "start", or seconds from 0.001 to ten years',
    ),
    "batch": _NAME, "remember": _whole(1, 2592000),
}
LINE = {**JOB, "queue": _NAME}
HEAD = {
    "batch": _NAME, "stream": _NAME, "offset": _whole(0, (1 << 53) - 1), "type": _NAME, "queue": _NAME,
    "sum": _text(re.compile("[0-9a-f]{16}").fullmatch, "16 hexadecimal digits"),
}
BATCH = {"batch": _NAME, "seal": _TRUE, "then": _NAME, "queue": _NAME}
RATE = {"limit": _NAME, "key": _text(lambda value: 1 <= len(value.encode()) <= 1024, "a string of 1 to 1024 bytes"), "cost": _COST}
TAKE = {**RATE, "wait": (_number(0, 86400), "a number of seconds from 0 to 86400"), "place": _text(re.compile(r"[0-9]+\.[a-z0-9_:,]+\.[A-Za-z0-9]+").fullmatch, "as it was answered"), "leave": _TRUE}
HOLD = {
    **TAKE, "ttl": (_number(0.1, 86400), "a number of seconds from 0.1 to 86400"),
    "tag": _text(re.compile(r"[A-Za-z0-9]{1,40}").fullmatch, "a string of 1 to 40 letters and digits"),
    "who": _text(lambda value: len(value.encode()) <= 200 and not re.search(r"[\x00-\x1f\x7f]", value) or not value, "a line of at most 200 bytes"),
}
RENEW = {"token": _text(re.compile(r"[A-Za-z0-9_.-]{1,128}~[A-Za-z0-9]+").fullmatch, "as it was answered")}
END = {**RENEW, "spent": _cost(0)}
ID = {"id": _NAME, "cursor": ((lambda value: False), "as it was answered")}  # here there is none


def check(document: Any, members: Dict[str, Any], required: str = "", what: str = "document") -> Dict[str, Any]:
    """Returns the document, or raises what is wrong with it."""
    for name, value in document.items():
        if name not in members:
            hint = '; what the handler needs goes into "args" or "meta"' if what == "job" else ""
            raise Invalid(f'wrong {what}: "{name[:60]}" is no member of it{hint}', name)
        fits, must_be = members[name]
        if not fits(value):
            raise Invalid(f'wrong {what}: "{name}" must be {must_be}, not {json.dumps(value, ensure_ascii=False)[:60]}', name)
    if required and required not in document:
        raise Invalid(f'wrong {what}: "{required}" is missing', required)
    return document
