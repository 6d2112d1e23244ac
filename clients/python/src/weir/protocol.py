"""Protocol 1 without a connection: documents are made here, and answers are read. Each operation is a generator: it yields
what is to be done (Call, Sleep, NEXT), is sent what came of it, and returns the result. So the same code serves threads,
asyncio and the test mode, which only carry. doc/protocol.md of Weir says what the documents mean."""
from __future__ import annotations

import hashlib
import json
import math
import secrets
import string
import threading
import time
from datetime import datetime, timedelta
from typing import Any, Dict, Generator, List, NamedTuple, Optional, Tuple, TypedDict, TypeVar, Union

from .errors import Closed, Cost, Error, Invalid, Missing, Refused, Span, Unknown, Unreachable

Document = Dict[str, Any]

GIVE_UP_S = 15  # a lost call is asked again for that long, well within the minute for which made ids are remembered
TEXT_LINES, TEXT_BYTES = 1000, 128 * 1024  # of one text of a bulk
DENIALS_MOST, DENIAL_LONGEST_S = 1000, 1.0  # a second, so that a rule that was changed shows within one


class Options(TypedDict, total=False):
    """What may be said of a job beside its type and args."""

    id: str
    queue: str
    key: str
    cost: Cost
    delay: Span
    at: Union[float, datetime]
    unique: str
    unique_until: Union[str, Span]
    batch: str
    remember: Span
    timeout: Span
    max_attempts: int
    traceparent: str
    meta: Any


class Lost(Exception):
    """A carrier raises it when nobody knows whether the call was done."""


class Call(NamedTuple):
    verb: str
    text: str


class Sleep(NamedTuple):
    seconds: float


class Next(NamedTuple):
    """The next row of the input; END behind the last one."""


NEXT, END = Next(), object()
T = TypeVar("T")
Steps = Generator[Any, Any, T]  # ends with that


class Enqueued(str):
    """The id of a job. new: it was enqueued now. locked: it is the job that holds the unique key."""

    new: bool
    locked: bool

    def __new__(cls, answer: Document) -> "Enqueued":
        self = super().__new__(cls, answer["id"])
        self.new, self.locked = answer["new"], answer.get("locked", False)
        return self


class Bulk(NamedTuple):
    """What came of a bulk."""

    lines: int  #: of the input, those included that an earlier run had sent
    jobs: int  #: enqueued by this call
    resumed: int  #: lines that an earlier run had sent


class Take(NamedTuple):
    """How a limit is."""

    allowed: bool
    limit: int  #: the burst
    remaining: int  #: slots that are free now
    reset_after: float  #: seconds until all are
    retry_after: Optional[float]  #: of a denial: seconds; None: never
    start_after: float  #: of who waited: the slot begins in so many seconds


# ---- Documents


def dumps(value: Any, member: Optional[str] = None) -> str:
    """Writes JSON as Weir takes it."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        text.encode()
        return text
    except UnicodeEncodeError:
        raise Invalid("not JSON: half a surrogate pair", member) from None
    except (TypeError, ValueError, RecursionError) as e:
        raise Invalid(f"not JSON: {e}", member) from None


def seconds(span: Any) -> Any:
    return span.total_seconds() if isinstance(span, timedelta) else span


def _time(at: Any) -> Any:
    if isinstance(at, datetime) and at.tzinfo is None:
        raise Invalid("wrong job: \"at\" has no time zone; use datetime.now(timezone.utc) or the like", "at")
    return at.timestamp() if isinstance(at, datetime) else at


def make_id() -> str:
    return "".join(secrets.choice(string.ascii_lowercase + string.digits) for _ in range(16))


def job_document(
    type: str, args: Any, *, id: Optional[str] = None, queue: Optional[str] = None, key: Optional[str] = None,
    cost: Optional[Cost] = None, delay: Optional[Span] = None, at: Union[float, datetime, None] = None,
    unique: Optional[str] = None, unique_until: Union[str, Span, None] = None, batch: Optional[str] = None,
    remember: Optional[Span] = None, timeout: Optional[Span] = None, max_attempts: Optional[int] = None,
    traceparent: Optional[str] = None, meta: Any = None,
) -> Document:
    if id is None:
        id, remember = make_id(), 60 if remember is None else remember
    remember = seconds(remember)
    if isinstance(remember, float) and remember.is_integer():
        remember = int(remember)
    document = {
        "remember": remember, "queue": queue, "in": seconds(delay), "at": _time(at), "unique": unique,
        "unique_until": seconds(unique_until), "batch": batch, "id": id, "type": type, "key": key, "cost": cost, "args": args,
        "max_attempts": max_attempts, "timeout": seconds(timeout), "traceparent": traceparent, "meta": meta,
    }
    return {name: value for name, value in document.items() if value is not None}


def text_of(document: Document) -> str:
    """Writes the document, and names the member that cannot be written."""
    return "{" + ",".join(f"{dumps(name)}:{dumps(value, name)}" for name, value in document.items()) + "}"


# ---- Answers


def read_answer(text: Union[str, bytes]) -> Document:
    """Returns the answer, or raises what it refuses."""
    try:
        answer = json.loads(text)
        kind = answer.get("refused")
    except (ValueError, AttributeError):
        raise Unreachable(f"the answer is not of Weir's protocol: {text[:80]!r}") from None
    if kind is None:
        return answer
    why = answer.get("why", kind)
    error = {"invalid": Invalid, "missing": Missing, "closed": Closed, "rights": Refused, "unavailable": Unreachable}.get(kind, Error)(why)
    error.member = answer.get("member")
    if isinstance(error, Invalid):
        error.line = answer.get("line")
    raise error


# ---- Redis: which words call a verb


class Words:
    """The words of each verb, by the prefix of their keys, as weir:{0}:about tells them."""

    def __init__(self, namespace: str) -> None:
        self.home = namespace + ":{0}:"
        self.known: Dict[str, Document] = {}

    def call(self, verb: str, text: str) -> Generator[Tuple[Any, ...], Any, str]:
        """Yields commands of Redis, is sent their replies, and returns the answer. A carrier throws FunctionMissing in. A cursor is
        of the partition that gave it, so it is followed here."""
        prefix, asked = self.home, text
        for _ in range(64):
            answer = yield from self._ask(prefix, verb, asked)
            while verb in ("job", "cancel") and list(json.loads(answer)) == ["cursor"]:
                asked = dumps({**json.loads(text), **json.loads(answer)})
                answer = yield from self._ask(prefix, verb, asked)
            if '"elsewhere"' not in answer[:20]:
                return answer
            prefix, asked = json.loads(answer)["elsewhere"], text
        raise Unreachable("it is always elsewhere: the partitions of this Redis disagree")

    def _ask(self, prefix: str, verb: str, text: str) -> Generator[Tuple[Any, ...], Any, str]:
        again = prefix in self.known
        while True:
            verbs = self.known.get(prefix)
            if verbs is None:
                verbs = self.known[prefix] = yield from self._read(prefix)
            words = verbs.get(verb)
            if not words:
                raise Unreachable(f"the Weir in this Redis does not know {verb}")
            try:
                answer = yield (*words, verb, text.encode())
                return answer.decode() if isinstance(answer, bytes) else str(answer)
            except FunctionMissing as e:
                self.known.pop(prefix, None)
                if not again:
                    raise Unreachable(str(e)) from None
                again = False

    @staticmethod
    def _read(prefix: str) -> Generator[Tuple[Any, ...], Any, Document]:
        text = yield ("HGET", prefix + "about", "protocol")
        try:
            about = json.loads(text)
            if about["protocol"] == 1:
                return about["verbs"]
        except (TypeError, ValueError, KeyError):
            pass
        raise Unreachable(f"no Weir of protocol 1 in this Redis ({prefix}about); a worker of Weir brings it as it begins")


class FunctionMissing(Exception):
    """Redis does not know the function: another version of Weir may have come."""


# ---- Operations


def ask(verb: str, document: Document, name: Optional[str] = None) -> Steps[Document]:
    """Asks, and asks again when the answer was lost."""
    return (yield from ask_text(verb, text_of(document), name))


def ask_text(verb: str, text: str, name: Optional[str] = None) -> Steps[Document]:
    begin, pause = time.monotonic(), 0.05
    lost: Optional[Exception] = None
    while True:
        try:
            return read_answer((yield Call(verb, text)))
        except Lost as e:
            lost = e
        except Unreachable:
            if not lost:
                raise
        except Missing:
            if lost and verb == "end":
                return {"ended": True}  # by the call whose answer was lost
            raise
        if time.monotonic() - begin > GIVE_UP_S:
            raise Unknown(f"outcome unknown: {lost}; ask again with {name or 'the same'}, it happens once", name)
        yield Sleep(pause)
        pause = min(1.0, pause * 2)


def enqueue(type: str, args: Any, **options: Any) -> Steps[Enqueued]:
    document = job_document(type, args, **options)
    answer = yield from ask("enqueue", document, document["id"])
    if options.get("id") is None and not answer.get("locked"):
        answer["new"] = True  # nobody else knows an id that was made here: an answer was lost, and it is there
    return Enqueued(answer)


def add_line(total: str, line: str) -> str:
    """The sum behind a line."""
    return hashlib.sha1((total + line).encode()).hexdigest()[:16]


class _Input:
    """Rows as lines, so many at a time."""

    def __init__(self) -> None:
        self.number = 0
        self.kept: Optional[str] = None
        self.ended = False

    def line(self) -> Generator[Next, Any, Optional[str]]:
        if self.kept is not None:
            line, self.kept = self.kept, None
            return line
        row = yield NEXT
        if row is END:
            self.ended = True
            return None
        self.number += 1
        try:
            return dumps(row, "args")
        except Invalid as e:
            raise Invalid(f"line {self.number}: {e}", e.member, self.number) from None

    def some(self) -> Generator[Next, Any, List[str]]:
        lines: List[str] = []
        size = 0
        while len(lines) < TEXT_LINES and not self.ended:
            line = yield from self.line()
            if line is None:
                break
            size += len(line.encode()) + 1
            if lines and size > TEXT_BYTES:
                self.kept = line
                break
            lines.append(line)
        return lines


def _changed(batch: str) -> Invalid:
    return Invalid(f"batch {batch}: the input is another one than that of which a part was sent; nothing more is sent", "batch")


def enqueue_many(
    type: Optional[str], *, batch: Optional[str] = None, then: Optional[str] = None, queue: Optional[str] = None
) -> Steps[Bulk]:
    if then and not batch:
        raise Invalid("wrong bulk: \"then\" wants a batch", "then")
    name, rows = batch or "stream." + make_id(), _Input()
    head: Document = {"batch" if batch else "stream": name}
    head.update({member: value for member, value in (("type", type), ("queue", queue)) if value is not None})
    at, total, jobs = 0, "0" * 16, 0
    if batch:
        try:
            known = yield from ask("batch", {"batch": batch})
        except Missing:
            known = {"lines": 0}
        while at < known["lines"]:
            line = yield from rows.line()
            if line is None:
                raise _changed(batch)
            at, total = at + 1, add_line(total, line)
        if at and total != known["sum"]:
            raise _changed(batch)
    resumed = at
    while True:
        lines = yield from rows.some()
        if not lines:
            break
        more = {"offset": at, "sum": total} if batch else {"offset": at}
        try:
            answer = yield from ask_text("bulk", "\n".join([text_of({**head, **more}), *lines]), name)
        except Invalid as e:
            number = at + e.line if e.line else None
            raise Invalid(f"line {number}: {e}" if number else str(e), e.member, number) from None
        if not answer["taken"]:
            expected = total
            for line in lines:
                expected = add_line(expected, line)
            if answer["lines"] != at + len(lines) or batch and answer["sum"] != expected:
                raise Closed(f"{name}: it has {answer['lines']} lines, not {at}: somebody else sends it, or it was forgotten")
        at, total = answer["lines"], answer["sum"]
        jobs += answer["jobs"] if answer["taken"] else len(lines)
    if batch:
        yield from ask("batch", seal_document(batch, then, queue))
    return Bulk(at, jobs, resumed)


def seal_document(batch: str, then: Optional[str], queue: Optional[str]) -> Document:
    document: Document = {"batch": batch, "seal": True}
    if then:
        document["then"] = then
        if queue:
            document["queue"] = queue
    return document


def _pages(verb: str, id: str) -> Steps[Document]:
    """Asks page by page. A job that moves meanwhile may be passed over, so it is looked for twice."""
    document, looked = {"id": id}, 0
    while True:
        try:
            answer = yield from ask(verb, document)
        except Missing:
            looked += 1
            if looked == 2:
                raise
            document = {"id": id}
            continue
        if "cursor" not in answer or "state" in answer or "cancelled" in answer:
            return answer
        document["cursor"] = answer["cursor"]


def job(id: str) -> Steps[Document]:
    return (yield from _pages("job", id))


def wait(clock: Any, id: str, timeout: Span) -> Steps[Document]:
    """Looks less and less often, and rests twenty times as long as a look takes."""
    until, rest = clock() + seconds(timeout), 0.02
    while True:
        asked = clock()
        answer = yield from job(id)
        now = clock()
        if answer["state"] in ("finished", "dead") or now >= until:
            return answer
        yield Sleep(min(until - now, max(rest, 20 * (now - asked))))
        rest = min(1.0, rest * 1.5)


def cancel(id: str) -> Steps[str]:
    answer = yield from _pages("cancel", id)
    return str(answer["cancelled"])


class Denials:
    """Answers again what was denied, until that can change."""

    def __init__(self) -> None:
        self.kept: Dict[Any, Tuple[float, float, Document]] = {}
        self.lock = threading.Lock()

    def find(self, question: Any, now: float) -> Optional[Document]:
        asked, until, answer = self.kept.get(question, (0.0, -math.inf, {}))
        if until <= now:
            return None
        passed = now - asked
        older = {**answer, "reset_after": max(0, answer["reset_after"] - passed)}
        if "retry_after" in answer:
            older["retry_after"] = answer["retry_after"] - passed
        return older

    def keep(self, question: Any, asked: float, answer: Document) -> None:
        until = asked + min(DENIAL_LONGEST_S, answer.get("retry_after", DENIAL_LONGEST_S))
        with self.lock:
            self.kept.pop(question, None)
            if len(self.kept) >= DENIALS_MOST:
                del self.kept[next(iter(self.kept))]
            self.kept[question] = (asked, until, answer)


class Hold:
    """Slots that are held, until the block ends."""

    def __init__(self, token: str, ttl: float) -> None:
        self.token, self.ttl = token, ttl
        self.spent: Optional[Cost] = None  #: what it has cost in truth, for the rates; None: as much as it took
        self.ended = False  # somebody said so
        self.till = 0.0

    @property
    def lost(self) -> bool:
        """The slots may be another's: it was ended, or could not be renewed in time."""
        return self.ended or awake() >= self.till


def awake() -> float:
    """A clock that goes on while the machine sleeps."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def take_of(answer: Document) -> Take:
    return Take(answer["allowed"], answer["limit"], answer["remaining"], answer["reset_after"], answer.get("retry_after"),
                answer.get("start_after", 0.0))


def take_document(limit: str, key: Optional[str], cost: Cost) -> Document:
    document: Document = {"limit": limit}
    if key is not None:
        document["key"] = key
    if cost != 1:
        document["cost"] = cost
    return document


def take(denials: Denials, clock: Any, limit: str, key: Optional[str], cost: Cost, wait: Span, fresh: bool) -> Steps[Take]:
    """wait 0: now or not at all. Else in line, and asleep until the slot begins."""
    question, most = (limit, key, cost if isinstance(cost, int) else tuple(sorted(cost.items()))), seconds(wait)
    asked = begin = clock()
    known = None if fresh else denials.find(question, begin)
    if known and known.get("retry_after", math.inf) > most:
        return take_of(known)
    answer, asked = yield from _stand(clock, "take", take_document(limit, key, cost), most)
    if not answer["allowed"]:
        denials.keep(question, asked, answer)
    return take_of(answer)


def _stand(clock: Any, verb: str, document: Document, most: float) -> Steps[Tuple[Document, float]]:
    """Stands in line until the slot begins, or is denied. Returns when that was asked, too."""
    asked = begin = clock()
    more: Document = {"wait": most} if most > 0 else {}
    try:
        while True:
            answer = yield from ask(verb, {**document, **more})
            if answer["allowed"] and answer.get("start_after"):
                yield Sleep(answer["start_after"])
            if "place" not in answer:
                return answer, asked
            more["place"] = answer["place"]
            yield Sleep(answer["ask_after"])
            asked = clock()
            more["wait"] = max(0, most - (asked - begin))
    except BaseException:
        if verb == "hold":  # perhaps it has them
            yield from _quietly("end", {"token": f"{document['limit']}~{document['tag']}"})
        if "place" in more:
            yield from _quietly(verb, {**document, "place": more["place"], "leave": True})
        raise


def _quietly(verb: str, document: Document) -> Steps[None]:
    try:
        yield Call(verb, text_of(document))
    except (Error, Lost):
        pass  # it comes by itself: a place is lost ten seconds behind its slot, a hold has an end


def hold(clock: Any, limit: str, key: Optional[str], cost: Cost, wait: Span, ttl: Span, who: str) -> Steps[Tuple[Take, Hold]]:
    document = {**take_document(limit, key, cost), "ttl": seconds(ttl), "tag": make_id(), "who": who}
    begin, at = clock(), awake()
    answer, asked = yield from _stand(clock, "hold", document, seconds(wait))
    one = Hold(answer.get("token", ""), seconds(ttl))
    one.till = at + asked - begin + one.ttl
    return take_of(answer), one


def renew(one: Hold) -> Steps[float]:
    """Returns how long to wait until the next time."""
    at = awake()
    try:
        yield from ask("renew", {"token": one.token})
        one.till = at + one.ttl
        return one.ttl / 3
    except Missing:
        one.ended = True
        raise
    except Error:
        return min(1.0, one.ttl / 10)


def end(one: Hold) -> Steps[None]:
    """Raises Missing: it was not held to the end."""
    document: Document = {"token": one.token}
    if one.spent is not None:
        document["spent"] = one.spent
    try:
        yield from ask("end", document)
    except (Unreachable, Unknown):
        pass  # it ends by itself
