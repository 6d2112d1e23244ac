"""Handlers, and the loop of a child of `weir worker --pipe`: a job a line in, an answer a line out.

The main thread reads; functions run on threads, coroutine functions on one asyncio loop. What they print goes to
the worker's log. When standard input ends, or TERM comes, the jobs that were read are finished."""
from __future__ import annotations

import asyncio
import functools
import inspect
import io
import json
import math
import os
import selectors
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Callable, Dict, Optional

from .client import Client
from .errors import Cost, Denied, Outcome
from .protocol import Enqueued, Options, dumps, seconds

if TYPE_CHECKING:
    from typing_extensions import Unpack

REASON_MOST = 500  # characters of a reason; more would only fill the log
RESULT_MOST = 65536  # bytes


class Job:
    """A job that a handler runs."""

    def __init__(self, document: Dict[str, Any], stopping: Optional[threading.Event] = None) -> None:
        #: All of it, as it was enqueued.
        self.document = document
        self.id: str = document["id"]
        self.type: str = document["type"]
        self.args: Any = document.get("args")
        #: 1 at the first attempt.
        self.attempt: int = document.get("attempt", 1)
        #: Seconds since 1970. None: another Redis client pushed it.
        self.enqueued_at: Optional[float] = document.get("enqueued_at")
        self.key: Optional[str] = document.get("key")
        self.traceparent: Optional[str] = document.get("traceparent")
        self.meta: Any = document.get("meta")
        self.cost_spent: Optional[Cost] = None
        self._stopping = stopping

    @property
    def cancelled(self) -> bool:
        """True when the worker ends this child: a job in it was cancelled, or is over its time."""
        return self._stopping is not None and self._stopping.is_set()

    def spent(self, cost: Cost) -> None:
        """Tells the true cost, where it was not known before, {"tokens": 1210} too: the limits take, or give back, the difference."""
        self.cost_spent = {name: int(n) for name, n in cost.items()} if isinstance(cost, dict) else int(cost)


class Result:
    """What a handler returns to leave what came of its job, any JSON of at most 64 KiB: kept with it where its type is (weir worker
    --keep). One that is no JSON, or larger, is left out, and the log says so."""

    def __init__(self, value: Any) -> None:
        self.value = value


Handler = Callable[[Job], Any]


def _left(job: Job, value: Any) -> Dict[str, Any]:
    try:
        size = len(dumps(value).encode())
        if size <= RESULT_MOST:
            return {"result": value}
        wrong = f"{size} bytes: at most {RESULT_MOST} are kept"
    except Exception as e:
        wrong = str(e)
    print(f"job {job.id}: wrong result: {wrong}; it counts as left out", file=sys.stderr)
    return {}


def answer_of(job: Job, error: Optional[BaseException], returned: Any = None) -> Dict[str, Any]:
    """Returns the line that ends the job, as a document."""
    try:
        answer = _answer(job, error)
        return {**answer, **_left(job, returned.value)} if error is None and isinstance(returned, Result) else answer
    except Exception as e:  # a text or a number of the error is none
        return {"id": job.id, "status": "retry", "reason": f"{type(error).__name__}, and {type(e).__name__}: {e}"}


def _answer(job: Job, error: Optional[BaseException]) -> Dict[str, Any]:
    answer: Dict[str, Any] = {"id": job.id, "status": "done"}
    after, reason = None, ""
    if isinstance(error, Outcome):
        answer["status"], after, reason = error.status, error.after, error.reason
    elif error is not None:
        answer["status"] = "retry"
        after = error.retry_after if isinstance(error, Denied) else None
        reason = f"{type(error).__name__}: {error}"
    if after is not None and math.isfinite(seconds(after)):
        answer["after"] = float(seconds(after))
    if reason:
        answer["reason"] = reason[:REASON_MOST].encode("utf-8", "replace").decode()
    if job.cost_spent is not None:
        answer["spent" if isinstance(job.cost_spent, dict) else "cost"] = job.cost_spent
    return answer


class Task:
    """A function whose calls are jobs: task.enqueue(1, to="ann"), or as others say task.delay(...). Its args are an object of its
    parameters by name. Called itself, it is the function."""

    def __init__(self, function: Callable[..., Any], type: str, client: Any, options: Dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self.function, self.type, self._client, self._options = function, type, client, options
        self.signature = inspect.signature(function)
        for parameter in self.signature.parameters.values():
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise TypeError(f"task {type}: its parameters must have names, which {parameter} has not")

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self.function(*args, **named)

    def options(self, **options: Unpack[Options]) -> "Task":
        """Returns the task with options of a job: mail.options(delay=60, unique="m1").enqueue(1)."""
        return Task(self.function, self.type, self._client, {**self._options, **options})

    def enqueue(self, *args: Any, **named: Any) -> Enqueued:
        """Enqueues a call."""
        bound = self.signature.bind(*args, **named)
        if not self._client:
            self._client = Client()
        id: Enqueued = self._client.enqueue(self.type, dict(bound.arguments), **self._options)
        return id

    delay = enqueue

    def handle(self, job: Job) -> Any:
        return self.function(**(job.args or {}))


class Handlers:
    """Handlers by type. Most programs use the one of the module: @weir.handler and weir.run()."""

    def __init__(self) -> None:
        self.by_type: Dict[str, Handler] = {}

    def handler(self, type: str) -> Callable[[Handler], Handler]:
        """Makes the function the handler of that type: called with a Job; returning is done."""

        def keep(function: Handler) -> Handler:
            if type in self.by_type:
                raise ValueError(f"handler: {type} has one already")
            self.by_type[type] = function
            return function

        return keep

    def task(self, function: Optional[Callable[..., Any]] = None, *, type: Optional[str] = None, client: Any = None,
             **options: Unpack[Options]) -> Any:
        """Makes a function a task, of a type that is named as it is. client: else one to $REDIS_URL. options: of its jobs."""

        def make(function: Callable[..., Any]) -> Task:
            task = Task(function, type or function.__name__, client, dict(options))
            self.handler(task.type)(_handle_of(task))
            return task

        return make(function) if function else make

    def find(self, job: Job) -> Handler:
        try:
            return self.by_type[job.type]
        except KeyError:
            raise LookupError(f"this program has no handler for {job.type}") from None

    def run_one(self, job: Job) -> Dict[str, Any]:
        """Runs a job here and now, and returns its answer."""
        try:
            result = self.find(job)(job)
            if inspect.isawaitable(result):
                result = asyncio.run(_wait(result))
        except (Exception, SystemExit) as e:
            return answer_of(job, e)
        return answer_of(job, None, result)

    def run(self, threads: int = 32) -> None:
        """Runs jobs as the child of weir worker --pipe 'TYPE=python3 this.py' --in-flight N, until it is told to stop.
        Functions run on at most that many threads at a time; coroutine functions all at once."""
        _Loop(self, threads).run()


def _handle_of(task: Task) -> Handler:
    if not inspect.iscoroutinefunction(task.function):
        return task.handle

    async def handle(job: Job) -> Any:
        return await task.handle(job)

    return handle


async def _wait(awaitable: Any) -> Any:
    return await awaitable


class _Log(io.TextIOBase):
    """Standard output of handlers: whole lines to standard error, as several threads print at a time."""

    encoding = "utf-8"

    def __init__(self) -> None:
        self.begun = threading.local()
        self.buffer = sys.stderr.buffer

    def fileno(self) -> int:
        return 2

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        *lines, rest = (getattr(self.begun, "text", "") + text).split("\n")
        self.begun.text = rest
        for line in lines:
            os.write(2, line.encode("utf-8", "backslashreplace") + b"\n")
        return len(text)


class _Loop:
    def __init__(self, handlers: Handlers, threads: int) -> None:
        self.handlers = handlers
        self.stopping = threading.Event()
        self.pool = ThreadPoolExecutor(threads, thread_name_prefix="weir")
        self.loop: Optional[asyncio.AbstractEventLoop] = None
        self.left = 0
        self.changed = threading.Condition()
        sys.stdout.flush()
        # The descriptors are kept from programs that handlers start. Others find the log, and an empty input.
        self.out, self.input = os.dup(1), os.dup(0)
        os.dup2(2, 1)
        self.log = _Log()
        sys.stdout = self.log  # type: ignore[assignment]
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        self.wake, self.woken = os.pipe()
        os.set_blocking(self.woken, False)

    def run(self) -> None:
        before = signal.signal(signal.SIGTERM, lambda *_: self.stop())
        self.write(b"\n")  # ends what was printed before, without a newline
        try:
            self.read()
            with self.changed:
                self.changed.wait_for(lambda: self.left == 0)
        finally:
            signal.signal(signal.SIGTERM, before)
            self.pool.shutdown()
            if self.loop:
                self.loop.call_soon_threadsafe(self.loop.stop)

    def stop(self) -> None:
        self.stopping.set()
        os.write(self.woken, b".")

    def read(self) -> None:
        """Begins a job for each line, until the input ends or TERM has come."""
        buffer = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(self.input, selectors.EVENT_READ)
            selector.register(self.wake, selectors.EVENT_READ)
            while True:
                selector.select()
                if self.stopping.is_set():
                    return
                chunk = os.read(self.input, 1 << 18)
                if not chunk:
                    return
                buffer += chunk
                if b"\n" in chunk:
                    *lines, rest = bytes(buffer).split(b"\n")
                    buffer = bytearray(rest)
                    for line in lines:
                        self.begin(line)

    def begin(self, line: bytes) -> None:
        if not line.strip():
            return
        job = Job(json.loads(line), self.stopping)
        with self.changed:
            self.left += 1
        if inspect.iscoroutinefunction(self.handlers.by_type.get(job.type)):
            asyncio.run_coroutine_threadsafe(self.run_async(job), self.event_loop())
        else:
            self.pool.submit(self.run_plain, job)

    def event_loop(self) -> asyncio.AbstractEventLoop:
        if not self.loop:
            self.loop = asyncio.new_event_loop()
            threading.Thread(target=self.loop.run_forever, name="weir-asyncio", daemon=True).start()
        return self.loop

    def run_plain(self, job: Job) -> None:
        try:
            answer = self.handlers.run_one(job)
        except BaseException as e:
            answer = answer_of(job, e)
        self.end(answer)

    async def run_async(self, job: Job) -> None:
        error: Optional[BaseException] = None
        result: Any = None
        try:
            result = await self.handlers.find(job)(job)
        except BaseException as e:
            error = e
        self.end(answer_of(job, error, result))

    def end(self, answer: Dict[str, Any]) -> None:
        if getattr(self.log.begun, "text", ""):
            self.log.write("\n")
        with self.changed:
            self.write(dumps(answer).encode() + b"\n")
            self.left -= 1
            self.changed.notify()

    def write(self, line: bytes) -> None:
        while line:
            line = line[os.write(self.out, line) :]


default = Handlers()
