"""Holds a client and does what each line says: clients/tests/README.md."""
import asyncio
import json
import os
import sys
import time
from urllib.parse import urlsplit

import redis.asyncio.cluster
import redis.asyncio.sentinel
import redis.sentinel

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "src"))
import weir
from weir import protocol

KINDS = {weir.Unreachable: "unreachable", weir.Refused: "refused", weir.Invalid: "invalid", weir.Missing: "missing",
         weir.Closed: "closed", weir.Denied: "denied", weir.Unknown: "unknown"}
handlers = weir.Handlers()
ran = []


def run(job):
    ran.append(job.args)
    how = job.args.get("do", "done") if isinstance(job.args, dict) else "done"
    if how == "dead":
        raise weir.Dead("as it was told")
    if how == "throttled" and ran.count(job.args) == 1:
        raise weir.Throttled(2)
    return weir.Result(job.args)


class Adapter:
    def __init__(self):
        self.client = self.fake = None
        self.loop = asyncio.new_event_loop()

    def wait(self, value):
        return self.loop.run_until_complete(value) if asyncio.iscoroutine(value) else value

    def connect(self, url=None, token=None, way=None, to=None, ca=None):
        if way == "fake":
            self.within = weir.testing.fake()
            self.fake = self.within.__enter__()
        library, own = redis.asyncio if way == "async" else redis, None
        if to == "cluster":
            own = library.cluster.RedisCluster.from_url(url)
        elif to == "sentinel":
            at = urlsplit(url)
            own = library.sentinel.Sentinel([(at.hostname, at.port)]).master_for("mymaster")
        elif to == "tls":
            url += "?ssl_ca_certs=" + ca
        self.client = (weir.aio.Client if way == "async" else weir.Client)(url, redis=own, token=token)

    def enqueue(self, type, args=None, options={}):
        job = self.wait(self.client.enqueue(type, args, **options))
        return {"id": job, "new": job.new, "locked": job.locked}

    def enqueue_many(self, type, count, **more):
        return self.wait(self.client.enqueue_many(type, ({"n": n} for n in range(count)), **more))._asdict()

    def take(self, **more):
        return self.wait(self.client.take(**more))._asdict()

    def slot(self, **more):
        async def within():
            async with self.client.slot(**more) as slot:
                return slot._asdict()

        if isinstance(self.client, weir.aio.Client):
            return self.wait(within())
        with self.client.slot(**more) as slot:
            return slot._asdict()

    def hold(self, seconds=0, spent=None, **more):
        async def within():
            async with self.client.hold(**more) as held:
                held.spent = spent
                await asyncio.sleep(seconds)
                return held.token

        if isinstance(self.client, weir.aio.Client):
            return self.wait(within())
        with self.client.hold(**more) as held:
            held.spent = spent
            (self.fake.move if self.fake else time.sleep)(seconds)
            return held.token

    def wait_for(self, id, seconds):
        return self.wait(self.client.wait(id, seconds))

    def rate(self, **more):
        return self.wait(self.client.rate(**more))._asdict()

    def call(self, verb, text):
        """Carries a document as it is, and returns the answer as it came."""
        def steps():
            return json.loads((yield protocol.Call(verb, text)))

        return self.wait(self.client._run(steps()))

    def set_rate(self, name, rules):
        self.fake.rate(name, rules)

    def keep(self, type, seconds):
        self.fake.keep(type, seconds)

    def move(self, seconds):
        self.fake.move(seconds)

    def drain(self, types):
        for type in types:
            handlers.by_type[type] = run
        self.fake.drain(handlers)
        return list(ran)

    def jobs(self, type):
        return self.fake.jobs(type)

    def __getattr__(self, name):  # job, cancel, batch, seal, about
        return lambda *args, **more: self.wait(getattr(self.client, name)(*args, **more))


adapter = Adapter()
for line in sys.stdin:
    told = json.loads(line)
    try:
        do = told.pop("do")
        answer = {"ok": getattr(adapter, "wait_for" if do == "wait" else do)(**told)}
    except weir.Error as e:
        answer = {"kind": KINDS[type(e)], "message": str(e)}
        answer.update({name: getattr(e, name) for name in ("member", "line", "retry_after", "id") if hasattr(e, name)})
    print(json.dumps(answer), flush=True)
