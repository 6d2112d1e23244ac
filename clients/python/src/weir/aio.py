"""The client for asyncio: as weir.Client, with await, over redis.asyncio."""
from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, AsyncIterable, AsyncIterator, Dict, Iterable, Optional, TypeVar, Union, cast

import redis.asyncio as redis_py

from . import carriers, client, protocol
from .errors import Cost, Error, Missing, Span
from .protocol import NEXT, Bulk, Enqueued, Hold, Options, Take

if TYPE_CHECKING:
    from typing_extensions import Unpack


T = TypeVar("T")


async def _each(rows: Union[Iterable[Any], AsyncIterable[Any]]) -> AsyncIterator[Any]:
    if isinstance(rows, AsyncIterable):
        async for row in rows:
            yield row
    else:
        for row in rows:
            yield row


async def _next(rows: AsyncIterator[Any]) -> Any:
    try:
        return await rows.__anext__()
    except StopAsyncIteration:
        return protocol.END


class Client:
    """As weir.Client; redis= is a connection of redis.asyncio. Tasks of one event loop may share it."""

    def __init__(
        self, url: Optional[str] = None, *, redis: Any = None, namespace: Optional[str] = None, token: Optional[str] = None
    ) -> None:
        self._denials = protocol.Denials()
        self._carrier = carriers.connect(url, redis, namespace, token, redis_py, carriers.AsyncRedisCarrier)
        if isinstance(self._carrier, carriers.HttpCarrier):
            self._carrier = carriers.Threaded(self._carrier)

    async def _run(self, steps: protocol.Steps[T], rows: Any = None) -> T:
        try:
            step = next(steps)
            while True:
                try:
                    result = await _next(rows) if step is NEXT else await carriers.do_async(self._carrier, step)
                except BaseException as e:
                    step = steps.throw(e)
                else:
                    step = steps.send(result)
        except StopIteration as end:
            return cast(T, end.value)

    async def enqueue(self, type: str, args: Any = None, **options: Unpack[Options]) -> Enqueued:
        """See weir.Client.enqueue."""
        return await self._run(protocol.enqueue(type, args, **options))

    async def enqueue_many(
        self, type: Optional[str], rows: Union[Iterable[Any], AsyncIterable[Any]], *, batch: Optional[str] = None,
        then: Optional[str] = None, queue: Optional[str] = None,
    ) -> Bulk:
        """See weir.Client.enqueue_many; rows may be asynchronous."""
        return await self._run(protocol.enqueue_many(type, batch=batch, then=then, queue=queue), _each(rows))

    async def job(self, id: str) -> Dict[str, Any]:
        """See weir.Client.job."""
        return await self._run(protocol.job(id))

    async def wait(self, id: str, timeout: Span) -> Dict[str, Any]:
        """See weir.Client.wait."""
        return await self._run(protocol.wait(carriers.clock, id, timeout))

    async def cancel(self, id: str) -> str:
        """See weir.Client.cancel."""
        return await self._run(protocol.cancel(id))

    async def batch(self, name: str) -> Dict[str, Any]:
        """See weir.Client.batch."""
        return await self._run(protocol.ask("batch", {"batch": name}))

    async def seal(self, name: str, then: Optional[str] = None, queue: Optional[str] = None) -> Dict[str, Any]:
        """See weir.Client.seal."""
        return await self._run(protocol.ask("batch", protocol.seal_document(name, then, queue)))

    async def take(self, limit: str, key: Optional[str] = None, *, cost: Cost = 1, wait: Span = 0, fresh: bool = False) -> Take:
        """See weir.Client.take. A task that is cancelled leaves the line."""
        return await self._run(protocol.take(self._denials, carriers.clock, limit, key, cost, wait, fresh))

    @asynccontextmanager
    async def slot(
        self, limit: str, key: Optional[str] = None, *, cost: Cost = 1, wait: Span = 0, fresh: bool = False
    ) -> AsyncIterator[Take]:
        """See weir.Client.slot: async with q.slot("openai"): ..."""
        take = await self.take(limit, key, cost=cost, wait=wait, fresh=fresh)
        if not take.allowed:
            raise client.denied(limit, take)
        yield take

    @asynccontextmanager
    async def hold(
        self, limit: str, key: Optional[str] = None, *, cost: Cost = 1, wait: Span = 0, ttl: Span = 30
    ) -> AsyncIterator[Hold]:
        """See weir.Client.hold: async with q.hold("gpu") as h: ... A task renews it."""
        take, one = await self._run(protocol.hold(carriers.clock, limit, key, cost, wait, ttl, carriers.who()))
        if not take.allowed:
            raise client.denied(limit, take)
        with carriers.renewed(one.token):
            renewing = None if carriers.fake else asyncio.ensure_future(self._renew(one))
            try:
                yield one
            except BaseException:
                with suppress(Error):
                    await self._run(protocol.end(one))
                raise
            finally:
                if renewing:
                    renewing.cancel()
            await self._run(protocol.end(one))

    async def _renew(self, one: Hold) -> None:
        rest = one.ttl / 3
        with suppress(Missing):
            while True:
                await asyncio.sleep(rest)
                rest = await self._run(protocol.renew(one))

    async def rate(self, limit: str, key: Optional[str] = None, *, cost: Cost = 1) -> Take:
        """See weir.Client.rate."""
        return protocol.take_of(await self._run(protocol.ask("rate", protocol.take_document(limit, key, cost))))

    async def about(self) -> Dict[str, Any]:
        """See weir.Client.about."""
        return await self._run(protocol.ask("about", {}))
