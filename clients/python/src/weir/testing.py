"""A Weir in memory, for the tests of programs: with weir.testing.fake() as t, every client speaks to it instead of Redis.

It takes the documents of the protocol and refuses what Weir refuses. Its clock stands still until t.move(). It has limits
by gcra (token-bucket is the same), fixed-window, sliding-log and concurrency, each by keys too, and refuses sliding-window,
months, zones, adapt and offset. A limit holds the type of its name. It has no partitions, schedules, rights, or workers: t.drain() runs jobs here and
now, one after the other."""
from __future__ import annotations

import json
import time
from contextlib import contextmanager
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Set

from . import carriers, documents, handlers, protocol
from .documents import check
from .errors import Closed, Cost, Error, Invalid, Missing
from .limits import Gate, Limit

_KINDS = ((Invalid, "invalid"), (Missing, "missing"), (Closed, "closed"))
KEEP_MADE_S, KEEP_GIVEN_S = 60, 86400


def _with(member: str, error: Error) -> Error:
    error.member = member
    return error


def _word(cost: Cost) -> str:
    parts = {"plain": cost} if isinstance(cost, int) else cost
    return ",".join([str(n) for name, n in parts.items() if name == "plain"] + [f"{name}:{n}" for name, n in sorted(parts.items()) if name != "plain"])


class _Job:
    def __init__(self, document: Dict[str, Any], queue: str, now: int) -> None:
        self.document, self.queue, self.enqueued_at = document, queue, now
        self.id, self.type = document["id"], document["type"]
        self.state, self.due, self.attempts, self.reason = "waiting", now, 0, ""
        self.batch: Optional[str] = None
        self.unique: Optional[str] = None
        self.result: Optional[str] = None


class _Hold(NamedTuple):
    since: int
    until: int
    ttl: int
    cost: Cost
    gates: List[Gate]


class Fake:
    def __init__(self) -> None:
        self.now = int(time.time() * 1e6)  # us
        self.limits: Dict[str, Limit] = {}
        self.line: List[_Job] = []  # in the order in which they start
        self.ids: Dict[str, int] = {}  # until when each is known
        self.unique: Dict[str, Any] = {}  # key -> id, until when, whether a start frees it
        self.batches: Dict[str, Dict[str, Any]] = {}
        self.streams: Dict[str, int] = {}
        self.keeps: Dict[str, int] = {}  # type -> us
        self.kept: Dict[str, _Job] = {}  # those that are done; due: until then
        self.holds: Dict[str, _Hold] = {}  # by their tokens
        self.renewed: Set[str] = set()  # those that a client renews as long as it holds them

    # ---- What tests ask

    def jobs(self, type: Optional[str] = None, state: Optional[str] = None) -> List[Dict[str, Any]]:
        """Returns the jobs that have not ended, and those that are dead, as handlers see them."""
        return [one.document for one in self.line if type in (None, one.type) and state in (None, one.state)]

    def args(self, type: str) -> List[Any]:
        """The args of the jobs of a type."""
        return [one.get("args") for one in self.jobs(type)]

    @property
    def dead(self) -> Dict[str, str]:
        """The dead jobs, with their reasons."""
        return {one.id: one.reason for one in self.line if one.state == "dead"}

    def rate(self, name: str, *rules: str) -> None:
        """Sets a limit, as weir rate set."""
        self.limits[name] = Limit(" ".join(rules))

    def keep(self, type: str, seconds: float) -> None:
        """Keeps jobs of that type, with their results, so long behind their end, as weir worker --keep."""
        self.keeps[type] = round(seconds * 1e6)

    def move(self, seconds: float) -> None:
        """Moves the clock forward."""
        self.now += round(seconds * 1e6)

    def drain(self, handlers_: Optional[handlers.Handlers] = None) -> int:
        """Runs what may start at this time, each job by its handler, and returns how many were run. Where no handler is there, and where
        a limit says not yet, jobs stay."""
        known, ran = handlers_ or handlers.default, 0
        while True:
            job = next((one for one in self.line if one.type in known.by_type and self._may_start(one)), None)
            if not job:
                return ran
            self._run(job, known)
            ran += 1

    # ---- A carrier, as of Redis

    def clock(self) -> float:
        return self.now / 1e6

    def sleep(self, seconds: float) -> None:
        self.now += max(1, round(seconds * 1e6))  # a rest that is too short for the clock would never end

    def call(self, verb: str, text: str) -> str:
        try:
            if verb not in VERBS:
                raise Missing(f"{verb}: no such verb")
            answer = getattr(self, "_end_hold" if verb == "end" else "_" + verb)(text if verb == "bulk" else documents.read_object(text))
        except Error as e:
            kind = next((kind for error, kind in _KINDS if isinstance(e, error)), "unavailable")
            answer = {"refused": kind, "why": str(e)}
            for name in ("member", "line"):
                if getattr(e, name, None) is not None:
                    answer[name] = getattr(e, name)
        return json.dumps(answer)

    def _about(self, document: Dict[str, Any]) -> Dict[str, Any]:
        check(document, {})
        return {"protocol": 1, "verbs": sorted(VERBS), "capabilities": ["costs", "hold", "result"], "partitions": 1}

    def _enqueue(self, document: Dict[str, Any]) -> Dict[str, Any]:
        check(document, documents.ENQUEUE, "type", "job")
        if "in" in document and "at" in document:
            raise Invalid('wrong job: "in" or "at", not both', "at")
        if "unique_until" in document and "unique" not in document:
            raise Invalid('wrong job: "unique_until" without "unique"', "unique_until")
        self._check_cost(document)
        id = document.get("id") or protocol.make_id()
        if self.ids.get(id, 0) > self.now:
            return {"id": id, "new": False}
        held = self.unique.get(document.get("unique", ""))
        if held and held[1] > self.now:
            return {"id": held[0], "new": False, "locked": True}
        if "batch" in document:
            self._open_batch(document["batch"])
        self.ids[id] = self.now + document.get("remember", KEEP_GIVEN_S if "id" in document else KEEP_MADE_S) * 10**6
        job = self._add({**document, "id": id}, document.get("queue", "default"), document.get("batch"))
        job.due = round(document["at"] * 1e6) if "at" in document else self.now + round(document.get("in", 0) * 1e6)
        job.state = "scheduled" if job.due > self.now else "waiting"
        if "unique" in document:
            until = document.get("unique_until", "end")
            ends = self.now + round(until * 1e6) if not isinstance(until, str) else 1 << 62
            self.unique[document["unique"]] = (id, ends, until)
            job.unique = document["unique"]
        return {"id": id, "new": True}

    def _check_cost(self, document: Dict[str, Any]) -> None:
        limit = self.limits.get(document["type"])
        for rule in limit.rules if limit else ():
            if rule.slots(document.get("cost", 1)) > rule.burst:
                raise Invalid(f"wrong job: its cost {_word(document.get('cost', 1))} never fits {rule.text} of {document['type']}", "cost")

    def _add(self, document: Dict[str, Any], queue: str, batch: Optional[str]) -> _Job:
        front = {name: document[name] for name in ("id", "type", "key", "cost") if name in document}
        if isinstance(front.get("cost"), dict):  # as the handlers of a worker get it
            costs = dict(sorted(front["cost"].items(), key=lambda one: (one[0] != "plain", one[0])))
            document = {**document, "cost": costs if list(costs) != ["plain"] else costs["plain"]}
            front["cost"] = document["cost"]
        job = _Job({**front, **{name: value for name, value in document.items() if name in documents.JOB}}, queue, self.now)
        self.line.append(job)
        if batch:
            job.batch = batch
            self.batches[batch]["total"] += 1
        return job

    def _open_batch(self, name: str) -> Dict[str, Any]:
        fresh = {"total": 0, "done": 0, "dead": 0, "cancelled": 0, "failed": 0, "lines": 0, "sum": "0" * 16, "created_at": self.clock()}
        batch = self.batches.setdefault(name, fresh)
        if "sealed_at" in batch:
            raise _with("batch", Closed(f"batch {name} is sealed: it takes no more jobs; use another name"))
        return batch

    def _bulk(self, text: str) -> Dict[str, Any]:
        if len(text.encode()) > documents.BULK_BYTES:
            raise Invalid(f"the text has more than {documents.BULK_BYTES} bytes")
        first, *lines = text.split("\n")
        head = check(documents.read_object(first), documents.HEAD, what="head")
        if lines and lines[-1] == "":
            lines.pop()
        if ("batch" in head) == ("stream" in head):
            raise Invalid('wrong head: "batch" or "stream", one of them', "stream" if "batch" in head else "batch")
        if "stream" in head and "sum" in head:
            raise Invalid('wrong head: a "sum" is of a batch', "sum")
        if len(lines) > documents.BULK_LINES:
            raise Invalid(f"{len(lines)} lines: at most {documents.BULK_LINES} in one text")
        offset, batch = head.get("offset", 0), head.get("batch", "")
        state = self.batches.get(batch, {"lines": 0, "sum": "0" * 16}) if batch else {"lines": self._stream(head), "sum": "0" * 16}
        if state["lines"] != offset or batch and head.get("sum", state["sum"]) != state["sum"]:
            return {"taken": False, "lines": state["lines"], "jobs": 0, "sum": state["sum"]}
        jobs = [self._line(head, line, i) for i, line in enumerate(lines, 1)]
        if batch:
            state = self._open_batch(batch)
            for line in lines:
                state["sum"] = protocol.add_line(state["sum"], line)
        else:
            self.streams[head["stream"]] = offset + len(lines)
        state["lines"] += len(lines)
        found = [job for job in jobs if job]
        for job in found:
            self._add({"id": protocol.make_id(), **job}, job.get("queue", head.get("queue", "default")), batch or None)
        return {"taken": True, "lines": state["lines"], "jobs": len(found), "sum": state["sum"]}

    def _stream(self, head: Dict[str, Any]) -> int:
        return self.streams.get(head["stream"], 0)

    def _line(self, head: Dict[str, Any], line: str, number: int) -> Optional[Dict[str, Any]]:
        if not line.strip(" \t\r"):
            return None
        try:
            if "type" in head:
                job = {"type": head["type"], "args": documents.read_json(line, "wrong args, not JSON", documents.DEPTH)}
            else:
                job = check(documents.read_object(line), documents.LINE, "type", "job")
            self._check_cost(job)
            return job
        except Invalid as e:
            e.line = number
            raise

    def _batch(self, document: Dict[str, Any]) -> Dict[str, Any]:
        check(document, documents.BATCH, "batch")
        for name, other in (("then", "seal"), ("queue", "then")):
            if name in document and other not in document:
                raise Invalid(f'wrong document: "{name}" without "{other}"', name)
        name = document["batch"]
        batch = self.batches.get(name)
        if "seal" in document and not (batch and "sealed_at" in batch):
            batch = self._open_batch(name)
            batch["sealed_at"] = self.clock()
            if "then" in document:
                batch["then"], batch["queue"] = document["then"], document.get("queue", "default")
            self._end_batch(name)
        elif batch and "then" in document and (batch.get("then"), batch.get("queue")) != (document["then"], document.get("queue", "default")):
            raise Closed(f"batch {name} was sealed before, with another job to follow")
        if not batch:
            raise Missing(f"batch {name}: no such batch")
        left = batch["total"] - batch["done"] - batch["dead"] - batch["cancelled"]
        state = "ended" if "ended_at" in batch else "sealed" if "sealed_at" in batch else "open"
        return {"batch": name, "state": state, "left": left, **{key: value for key, value in batch.items() if key != "queue"}}

    def _end_batch(self, name: str) -> None:
        batch = self.batches[name]
        counts = {count: batch[count] for count in ("total", "done", "dead", "cancelled")}
        if "sealed_at" not in batch or "ended_at" in batch or batch["total"] > sum(counts.values()) - batch["total"]:
            return
        batch["ended_at"] = self.clock()
        if "then" in batch:
            self._add({"id": name + ".then", "type": batch["then"], "args": {"batch": name, **counts}}, batch["queue"], None)

    def _job(self, document: Dict[str, Any]) -> Dict[str, Any]:
        check(document, documents.ID, "id")
        job = self._find(document["id"])
        answer = {"id": job.id, "state": job.state, "type": job.type, "queue": job.queue, "attempts": job.attempts,
                  "enqueued_at": job.enqueued_at / 1e6}
        more = {"batch": job.batch, "unique": job.unique, "reason": job.reason if job.state == "dead" else None,
                "start": job.due / 1e6 if job.state in ("scheduled", "retry") else None,
                "outcome": "done" if job.state == "finished" else None}
        if job.result is not None:
            more["result"] = json.loads(job.result)
        return {**answer, **{name: value for name, value in more.items() if value is not None}}

    def _find(self, id: str) -> _Job:
        kept = self.kept.get(id)
        if kept and kept.due > self.now:
            return kept
        for job in self.line:
            if job.id == id:
                return job
        raise Missing(f"job {id}: no such job here: it is done, or was never enqueued")

    def _cancel(self, document: Dict[str, Any]) -> Dict[str, Any]:
        check(document, documents.ID, "id")
        job = self._find(document["id"])
        if job.state in ("dead", "finished"):
            raise Closed(f"job {job.id}: it is {job.state} already")
        if job.state == "running":
            return {"id": job.id, "cancelled": "told"}
        self._end(job, "cancelled")
        return {"id": job.id, "cancelled": "removed"}

    def _take(self, document: Dict[str, Any]) -> Dict[str, Any]:
        return self._ask_limit(check(document, documents.TAKE, "limit"), True)

    def _rate(self, document: Dict[str, Any]) -> Dict[str, Any]:
        return self._ask_limit(check(document, documents.RATE, "limit"), False)

    def _hold(self, document: Dict[str, Any]) -> Dict[str, Any]:
        check(document, documents.HOLD, "limit")
        self._end_late()
        tag = document.get("place", "").split(".")[-1] or document.get("tag") or protocol.make_id()
        token = f"{document['limit']}~{tag}"
        if token in self.holds and "leave" not in document:
            self._extend(token)
            return {"allowed": True, "limit": 0, "remaining": 0, "reset_after": 0, "token": token}
        answer = self._ask_limit(document, True, tag)
        if answer.get("allowed"):
            ttl, cost = round(document.get("ttl", 30) * 1e6), document.get("cost", 1)
            gates = self.limits[document["limit"]].of(document.get("key", ""))
            self.holds[token] = _Hold(self.now, self.now + ttl, ttl, cost, gates)
            answer["token"] = token
        return answer

    def _renew(self, document: Dict[str, Any]) -> Dict[str, Any]:
        self._extend(self._held(check(document, documents.RENEW, "token")))
        return {"held": True}

    def _end_hold(self, document: Dict[str, Any]) -> Dict[str, Any]:
        token = self._held(check(document, documents.END, "token"))
        self._give_back(token, document.get("spent"))
        return {"ended": True}

    def _held(self, document: Dict[str, Any]) -> str:
        self._end_late()
        if document["token"] not in self.holds:
            raise _with("token", Missing("it is not held any more; it has ended, or was not renewed in time"))
        return str(document["token"])

    def _extend(self, token: str) -> None:
        self.holds[token] = self.holds[token]._replace(until=self.now + self.holds[token].ttl)

    def _give_back(self, token: str, spent: Optional[Cost] = None) -> None:
        hold = self.holds.pop(token)
        for gate in hold.gates:
            gate.running -= gate.rule.algorithm == "concurrency"
            if spent is not None:
                gate.settle(hold.since, hold.cost, spent)

    def _end_late(self) -> None:
        for token, hold in list(self.holds.items()):
            if hold.until <= self.now and token not in self.renewed:
                self._give_back(token)

    def _ask_limit(self, document: Dict[str, Any], takes: bool, tag: Optional[str] = None) -> Dict[str, Any]:
        if "place" in document and not ("wait" in document or "leave" in document):
            raise Invalid('wrong document: "place" without "wait" or "leave"', "place")
        if "place" in document and document["place"].split(".")[1] != _word(document.get("cost", 1)):
            raise Invalid('wrong document: "place" is of another cost', "place")
        if tag and document.get("tag", tag) != tag:
            raise Invalid('wrong document: "tag" is not that of "place"', "tag")
        if "leave" in document and "place" not in document:
            raise Invalid('wrong document: "leave" without "place"', "leave")
        limit, cost = self.limits.get(document["limit"]), document.get("cost", 1)
        if not limit:
            raise _with("limit", Missing("there is no such limit; set it with weir rate set, or give a rule"))
        if not tag and any(rule.algorithm == "concurrency" for rule in limit.rules):
            raise Invalid("the limit counts jobs in flight, which a take cannot give back", "limit")
        if bool(limit.by) != ("key" in document):
            raise Invalid("the limit is kept for each key; name one" if limit.by else "the limit has no keys", "key")
        if "leave" in document:
            return {"left": True}
        gates, paused = limit.of(document.get("key", "")), limit.paused(document.get("key", ""))
        starts = [gate.start(self.now, cost) for gate in gates]
        start = None if None in starts else max(paused, self.now, *(one for one in starts if one is not None))
        allowed = start == self.now
        if allowed and takes:
            for gate in gates:
                gate.take(self.now, cost)
        reset = max(paused, *(gate.resets(self.now) for gate in gates), self.now)
        answer: Dict[str, Any] = {"allowed": allowed, "limit": min(gate.rule.burst for gate in gates), "reset_after": (reset - self.now) / 1e6,
                  "remaining": min(gate.remaining(self.now) for gate in gates) if paused <= self.now else 0}
        if start is None:
            answer.update(never=True, limit=gates[starts.index(None)].rule.burst)
        elif not allowed:
            if start >= 1 << 62:  # as somebody ends
                after = 0.1 if document.get("wait") else 10.0
            else:
                after = (start - self.now) / 1e6
            answer["retry_after"] = after
            if after <= document.get("wait", -1):
                answer.update(place=f"{self.now}.{_word(cost)}.{tag or 'fake'}", ask_after=min(5, after))
        return answer

    # ---- Running

    def _gates(self, job: _Job) -> List[Gate]:
        limit = self.limits.get(job.type)
        return limit.of(limit.key_of(job.document)) if limit else []

    def _may_start(self, job: _Job) -> bool:
        if job.state in ("dead", "running") or job.due > self.now:
            return False
        self._end_late()
        limit, cost = self.limits.get(job.type), job.document.get("cost", 1)
        if limit and limit.paused(limit.key_of(job.document)) > self.now:
            return False
        return all(gate.start(self.now, cost) == self.now for gate in self._gates(job))

    def _run(self, job: _Job, known: handlers.Handlers) -> None:
        gates = self._gates(job)
        for gate in gates:
            gate.take(self.now, job.document.get("cost", 1))
        if job.unique and self.unique[job.unique][2] == "start":
            self._free(job, job.unique)
        job.state = "running"
        given = {"attempt": job.attempts + 1, "enqueued_at": job.enqueued_at / 1e6, **job.document}
        answer = known.run_one(handlers.Job(json.loads(json.dumps(given))))
        for gate in gates:
            gate.running -= gate.rule.algorithm == "concurrency"
        job.state = "waiting"
        if answer["status"] == "done":
            self._end(job, "done")
            if job.type in self.keeps:
                self._keep(job, answer)
        elif answer["status"] == "throttled":
            self._throttle(job, answer.get("after", 1.0))
        else:
            self._fail(job, answer)

    def _keep(self, job: _Job, answer: Dict[str, Any]) -> None:
        job.state, job.due, job.attempts = "finished", self.now + self.keeps[job.type], job.attempts + 1
        self.kept[job.id] = job
        if "result" in answer:
            job.result = protocol.dumps(answer["result"])

    def _throttle(self, job: _Job, after: float) -> None:
        limit = self.limits.get(job.type)
        until = self.now + max(100000, round(after * 1e6))
        if limit:
            limit.pause(limit.key_of(job.document), until)
        else:
            job.due = until

    def _fail(self, job: _Job, answer: Dict[str, Any]) -> None:
        job.attempts += 1
        job.reason = answer.get("reason", "")
        if job.batch:
            self.batches[job.batch]["failed"] += 1
        if answer["status"] == "dead" or job.attempts >= job.document.get("max_attempts", 25):
            self._end(job, "dead")
            return
        job.state = "retry"
        job.due = self.now + round(answer.get("after", 15 + job.attempts**4) * 1e6)

    def _free(self, job: _Job, key: str) -> None:
        held = self.unique.get(key)
        if held and held[0] == job.id and isinstance(held[2], str):
            del self.unique[key]

    def _end(self, job: _Job, how: str) -> None:
        if how == "dead":
            job.state = "dead"
        else:
            self.line.remove(job)
        if job.unique:
            self._free(job, job.unique)
        if job.batch:
            self.batches[job.batch][how] += 1
            self._end_batch(job.batch)


VERBS = ("about", "batch", "bulk", "cancel", "end", "enqueue", "hold", "job", "rate", "renew", "take")


@contextmanager
def fake() -> Iterator[Fake]:
    """Lets every client of this process speak to a Weir in memory until the end of the block."""
    before, carriers.fake = carriers.fake, Fake()
    try:
        yield carriers.fake
    finally:
        carriers.fake = before
