"""What carries a call: the user's own Redis connection, HTTP to weir serve, or the test mode."""
from __future__ import annotations

import asyncio
import http.client
import os
import socket
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from typing import Any, Iterator, Optional

from redis import exceptions

from . import protocol
from .errors import Invalid, Refused, Unreachable
from .protocol import FunctionMissing, Lost, Words

HTTP_TIMEOUT_S = 30
HTTP_BYTES_MOST = 2 << 20  # of any document; weir serve reads no more, and may close the connection before it says so

#: The test mode, while there is one (weir.testing.fake): every client speaks to it.
fake: Any = None


def redis_failure(e: Exception) -> Exception:
    """What an exception of redis-py means."""
    text = str(e)
    if isinstance(e, exceptions.ResponseError) and "unction not found" in text:
        return FunctionMissing(text)
    if isinstance(e, (exceptions.AuthenticationError, exceptions.NoPermissionError)) or text.startswith(
        ("NOPERM", "NOAUTH", "WRONGPASS")
    ):
        return Refused(f"Redis refused: {text}; weir acl producer, weir acl taker print what a user needs")
    in_doubt = isinstance(e, (exceptions.ConnectionError, exceptions.TimeoutError, OSError))
    surely_not = isinstance(e, exceptions.BusyLoadingError) or "onnecting to" in text or "No master" in text
    if in_doubt and not surely_not:
        return Lost(text)
    return Unreachable(f"Redis: {text}")


_FAILURES = (exceptions.RedisError, OSError)


class RedisCarrier:
    def __init__(self, client: Any, namespace: str) -> None:
        self.client, self.words = client, Words(namespace)

    def call(self, verb: str, text: str) -> str:
        steps = self.words.call(verb, text)
        try:
            command = next(steps)
            while True:
                try:
                    reply = self.client.execute_command(*command)
                except _FAILURES as e:
                    command = steps.throw(redis_failure(e))
                else:
                    command = steps.send(reply)
        except StopIteration as end:
            return end.value


class AsyncRedisCarrier:
    def __init__(self, client: Any, namespace: str) -> None:
        self.client, self.words = client, Words(namespace)

    async def call(self, verb: str, text: str) -> str:
        steps = self.words.call(verb, text)
        try:
            command = next(steps)
            while True:
                try:
                    reply = await self.client.execute_command(*command)
                except _FAILURES as e:
                    command = steps.throw(redis_failure(e))
                else:
                    command = steps.send(reply)
        except StopIteration as end:
            return end.value


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


class HttpCarrier:
    def __init__(self, url: str, token: Optional[str]) -> None:
        self.url, self.token = url.rstrip("/"), token
        self.opener = urllib.request.build_opener(_NoRedirect)

    def call(self, verb: str, text: str) -> str:
        if len(text.encode()) > HTTP_BYTES_MOST:
            raise Invalid(f"the document has more than {HTTP_BYTES_MOST} bytes")
        kind = "application/x-ndjson" if verb == "bulk" else "application/json"
        request = urllib.request.Request(f"{self.url}/api/v1/{verb}", text.encode(), {"Content-Type": kind})
        if self.token:
            request.add_header("Authorization", "Bearer " + self.token)
        try:
            with self.opener.open(request, timeout=HTTP_TIMEOUT_S) as response:
                return response.read().decode()
        except urllib.error.HTTPError as e:
            return self._refusal(e)
        except urllib.error.URLError as e:
            if isinstance(e.reason, (ConnectionResetError, BrokenPipeError, TimeoutError)):
                raise Lost(f"{self.url}: {e.reason}") from None
            raise Unreachable(f"{self.url}: {e.reason}") from None
        except (OSError, http.client.HTTPException) as e:
            raise Lost(f"{self.url}: {e!r}") from None

    def _refusal(self, e: urllib.error.HTTPError) -> str:
        with e:
            try:
                text = e.read().decode()
            except (OSError, http.client.HTTPException, UnicodeDecodeError):
                text = ""
        if '"refused"' in text:
            return text
        error = Lost if e.code >= 500 else Refused if e.code in (401, 403) else Unreachable
        raise error(f"{self.url}: HTTP {e.code}: {text[:200]}")


class Threaded:
    """A blocking carrier for asyncio."""

    def __init__(self, carrier: HttpCarrier) -> None:
        self.carrier = carrier

    async def call(self, verb: str, text: str) -> str:
        return await asyncio.get_running_loop().run_in_executor(None, self.carrier.call, verb, text)


def connect(url: Optional[str], own: Any, namespace: Optional[str], token: Optional[str], library: Any, carrier: Any) -> Any:
    """Returns a carrier for the user's own connection, or for one to that address, which opens at the first call."""
    namespace = namespace or os.environ.get("WEIR_NAMESPACE") or "weir"
    address = url or os.environ.get("REDIS_URL") or "redis://127.0.0.1:6379"
    if own is None and address.startswith(("http://", "https://")):
        return HttpCarrier(address, token or os.environ.get("WEIR_TOKEN"))
    if own is None:
        address = "unix://" + os.path.abspath(address) if address[0] in "./" else address
        own = library.Redis.from_url(address, socket_timeout=15)
    return carrier(own, namespace)


@contextmanager
def renewed(token: str) -> Iterator[None]:
    """In the test mode, whose clock stands still, a client's hold lasts as long as its block."""
    if fake:
        fake.renewed.add(token)
    try:
        yield
    finally:
        if fake:
            fake.renewed.discard(token)


def who() -> str:
    """Names this process to those who look who holds slots."""
    return f"{socket.gethostname()}:{os.getpid()}"[:200]


def clock() -> float:
    return fake.clock() if fake else time.monotonic()


def do(carrier: Any, step: Any) -> Any:
    """Does a step at once where the test mode can, else by the carrier of a thread."""
    if isinstance(step, protocol.Call):
        return (fake or carrier).call(step.verb, step.text)
    return (fake.sleep if fake else time.sleep)(step.seconds)


async def do_async(carrier: Any, step: Any) -> Any:
    if fake:
        return do(None, step)
    if isinstance(step, protocol.Call):
        return await carrier.call(step.verb, step.text)
    await asyncio.sleep(step.seconds)
