"""The client for threads. weir.aio has the same for asyncio."""
from __future__ import annotations

import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, Optional, TypeVar, cast

import redis as redis_py

from . import carriers, protocol
from .errors import Cost, Denied, Error, Missing, Span
from .protocol import NEXT, Bulk, Enqueued, Hold, Options, Take

if TYPE_CHECKING:
    from typing_extensions import Unpack


T = TypeVar("T")


def denied(limit: str, take: Take) -> Denied:
    if take.retry_after is None:
        return Denied(f"{limit}: this costs more than the limit can hold", None)
    return Denied(f"{limit}: denied; again in {take.retry_after:.3f} s", take.retry_after)


class Client:
    """Speaks to one Redis (url, else $REDIS_URL; or a connection of your own as redis=) and one namespace. A url that begins
    with http is that of weir serve, with its token (else $WEIR_TOKEN). It connects at the first call. Threads may share it."""

    def __init__(
        self, url: Optional[str] = None, *, redis: Any = None, namespace: Optional[str] = None, token: Optional[str] = None
    ) -> None:
        self._denials = protocol.Denials()
        self._carrier = carriers.connect(url, redis, namespace, token, redis_py, carriers.RedisCarrier)

    def _run(self, steps: protocol.Steps[T], rows: Iterator[Any] = iter(())) -> T:
        try:
            step = next(steps)
            while True:
                try:
                    result = next(rows, protocol.END) if step is NEXT else carriers.do(self._carrier, step)
                except BaseException as e:
                    step = steps.throw(e)
                else:
                    step = steps.send(result)
        except StopIteration as end:
            return cast(T, end.value)

    def enqueue(self, type: str, args: Any = None, **options: Unpack[Options]) -> Enqueued:
        """Enqueues one job and returns its id. It arrives once, also over a connection that breaks. .new is False when the id
        was known; .locked is True when it is the id of the job that holds the unique key."""
        return self._run(protocol.enqueue(type, args, **options))

    def enqueue_many(
        self, type: Optional[str], rows: Iterable[Any], *, batch: Optional[str] = None, then: Optional[str] = None,
        queue: Optional[str] = None,
    ) -> Bulk:
        """Enqueues a job for each row, in constant memory; without type each row is a job: {"type": ..., "args": ...}. With a
        batch: call it again with the same rows after any failure, and each job is there once. then: a type; a job of it
        follows when all have ended."""
        return self._run(protocol.enqueue_many(type, batch=batch, then=then, queue=queue), iter(rows))

    def job(self, id: str) -> Dict[str, Any]:
        """Returns where a job is: {"state": ...}. Raises Missing: it is done, or was never enqueued."""
        return self._run(protocol.job(id))

    def wait(self, id: str, timeout: Span) -> Dict[str, Any]:
        """Returns the job once it is finished or dead, or as it stands when the time is over. "result": what its handler left.
        Raises Missing: it is done and its type is not kept, or was never enqueued."""
        return self._run(protocol.wait(carriers.clock, id, timeout))

    def cancel(self, id: str) -> str:
        """Ends a job in any state: "removed", "marked", "told" (it runs), "already"."""
        return self._run(protocol.cancel(id))

    def batch(self, name: str) -> Dict[str, Any]:
        """Returns how far a batch is: state, total, left, done, dead, cancelled."""
        return self._run(protocol.ask("batch", {"batch": name}))

    def seal(self, name: str, then: Optional[str] = None, queue: Optional[str] = None) -> Dict[str, Any]:
        """Says that no more jobs come into the batch. enqueue_many does it itself."""
        return self._run(protocol.ask("batch", protocol.seal_document(name, then, queue)))

    def take(self, limit: str, key: Optional[str] = None, *, cost: Cost = 1, wait: Span = 0, fresh: bool = False) -> Take:
        """Takes a slot, and says whether it was allowed. wait: so long it stands in line. fresh: asks also when the same was
        denied a moment ago."""
        return self._run(protocol.take(self._denials, carriers.clock, limit, key, cost, wait, fresh))

    @contextmanager
    def slot(self, limit: str, key: Optional[str] = None, *, cost: Cost = 1, wait: Span = 0, fresh: bool = False) -> Iterator[Take]:
        """The same as a context: with q.slot("openai"): ...; raises Denied. A slot stays taken whatever happens in it."""
        take = self.take(limit, key, cost=cost, wait=wait, fresh=fresh)
        if not take.allowed:
            raise denied(limit, take)
        yield take

    @contextmanager
    def hold(
        self, limit: str, key: Optional[str] = None, *, cost: Cost = 1, wait: Span = 0, ttl: Span = 30
    ) -> Iterator[Hold]:
        """Holds slots, of concurrency too, while the block runs: with q.hold("gpu", wait=60) as h: ... h.spent = 3; raises Denied. A
        thread renews them; if this program dies they come back ttl later. h.lost: they may be another's, so stop; if they were at
        the end of the block, that raises Missing."""
        take, one = self._run(protocol.hold(carriers.clock, limit, key, cost, wait, ttl, carriers.who()))
        if not take.allowed:
            raise denied(limit, take)
        over = threading.Event()
        with carriers.renewed(one.token):
            if not carriers.fake:
                threading.Thread(target=self._renew, args=(one, over), name="weir-hold", daemon=True).start()
            try:
                yield one
            except BaseException:
                over.set()
                with suppress(Error):
                    self._run(protocol.end(one))
                raise
            over.set()
            self._run(protocol.end(one))

    def _renew(self, one: Hold, over: threading.Event) -> None:
        rest = one.ttl / 3
        with suppress(Missing):
            while not over.wait(rest):
                rest = self._run(protocol.renew(one))

    def rate(self, limit: str, key: Optional[str] = None, *, cost: Cost = 1) -> Take:
        """Returns how a limit is, and takes nothing."""
        return protocol.take_of(self._run(protocol.ask("rate", protocol.take_document(limit, key, cost))))

    def about(self) -> Dict[str, Any]:
        """Returns what this Weir can do: protocol, verbs, capabilities, partitions."""
        return self._run(protocol.ask("about", {}))
