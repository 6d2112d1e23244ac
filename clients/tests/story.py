"""The story: what a program lives through with Weir, told by the adapter of any language against a real server and workers.
Each case is a function of (stage, adapter): adapter(**where) starts one."""
import json
import os
import signal
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from stage import Proxy, Refused, await_that, free_port


def refusal(call, *arguments, **named):
    try:
        value = call(*arguments, **named)
    except Refused as e:
        return e
    raise AssertionError(f"{arguments} {named} was not refused: {value}")


def pipe(stage, *types, in_flight=8, more=()):
    words = [word for type in types for word in ("--pipe", f"{type}={stage.handlers}")]
    return stage.worker(*words, "--in-flight", str(in_flight), "-c", "16", *more)


def bulk_over_a_cut_connection(stage, start):
    """5,000 jobs, and the connection is cut within a text and before an answer: each arrives once."""
    proxy = Proxy(stage, [12000, -2, 15000])
    q = start(url=proxy.url)
    done = q("enqueue_many", type="many", count=5000, batch="week-47", then="report")
    assert done == {"lines": 5000, "jobs": 5000, "resumed": 0}, done
    assert proxy.made == 4, f"it was not cut: {proxy.made} connections"
    assert q("batch", name="week-47")["total"] == 5000
    again = refusal(q, "enqueue_many", type="many", count=4000, batch="week-47")
    assert again.kind == "invalid", again
    done = q("enqueue_many", type="many", count=5000, batch="week-47", then="report")
    assert done == {"lines": 5000, "jobs": 0, "resumed": 5000}, done
    pipe(stage, "many", "report")
    await_that("the report came", lambda: any(job["type"] == "report" for job in stage.jobs()))
    numbers = [job["args"]["n"] for job in stage.jobs() if job["type"] == "many"]
    assert sorted(numbers) == list(range(5000)), f"{len(numbers)} runs of {len(set(numbers))} jobs"
    reports = [job for job in stage.jobs() if job["type"] == "report"]
    assert len(reports) == 1 and reports[0]["id"] == "week-47.then", reports
    assert reports[0]["args"] == {"batch": "week-47", "total": 5000, "done": 5000, "dead": 0, "cancelled": 0}, reports
    await_that("the batch has ended", lambda: q("batch", name="week-47")["state"] == "ended")


def bulk_without_a_batch(stage, start):
    q = start(url=Proxy(stage, [20000, -2]).url)
    done = q("enqueue_many", type="many", count=2500)
    assert done == {"lines": 2500, "jobs": 2500, "resumed": 0}, done
    assert stage.stat("many", "enqueued") == 2500


def one_job(stage, start):
    q = start()
    proxied = start(url=Proxy(stage, [200, -2, -1]).url)
    for n in range(5):  # three of them lose their connection on the way
        assert proxied("enqueue", type="cut", args={"n": n})["new"]
    assert stage.stat("cut", "enqueued") == 5
    given = q("enqueue", type="mail", args={"to": "ann <&> \u2028 ü"}, options={
        "id": "m1", "queue": "high", "key": "ann", "cost": 2, "delay": 3600, "timeout": 30.5, "max_attempts": 5, "batch": "b",
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "meta": {"a": [1]}})
    assert given == {"id": "m1", "new": True, "locked": False}, given
    assert not q("enqueue", type="mail", options={"id": "m1"})["new"]
    state = q("job", id="m1")
    assert (state["state"], state["type"], state["queue"]) == ("scheduled", "mail", "high"), state
    body = json.loads(stage.weir("job", "show", "m1", "--json"))
    body = body.get("body", body)
    body = json.loads(body) if isinstance(body, str) else body
    assert body["args"] == {"to": "ann <&> \u2028 ü"} and body["meta"] == {"a": [1]} and body["cost"] == 2, body
    assert q("batch", name="b")["total"] == 1
    assert q("cancel", id="m1") == "removed"
    assert refusal(q, "cancel", id="m1").kind == "missing"
    assert refusal(q, "job", id="m1").kind == "missing"
    assert q("batch", name="b")["cancelled"] == 1
    assert q("seal", name="b")["state"] == "ended"
    assert refusal(q, "enqueue", type="mail", options={"batch": "b"}).kind == "closed"
    assert refusal(q, "batch", name="nobody").kind == "missing"
    assert q("about")["protocol"] == 1


def unique(stage, start):
    q = start()
    first = q("enqueue", type="sync", options={"unique": "account-7"})
    second = q("enqueue", type="sync", options={"unique": "account-7"})
    assert second == {"id": first["id"], "new": False, "locked": True}, second
    q("cancel", id=first["id"])
    assert q("enqueue", type="sync", options={"unique": "account-7", "unique_until": 0.05})["new"]


def wrong_input(stage, start):
    """The same is refused over both carriers."""
    for q in (start(), start(url=stage.serve("--allow-enqueue", "--allow-actions"))):
        for arguments, member in (
            ({"type": "a b"}, "type"), ({"type": ""}, "type"), ({"type": "x" * 129}, "type"),
            ({"type": "mail", "options": {"id": "é"}}, "id"), ({"type": "mail", "options": {"cost": 0}}, "cost"),
            ({"type": "mail", "options": {"cost": 1.5}}, "cost"), ({"type": "mail", "options": {"delay": -1}}, "in"),
            ({"type": "mail", "options": {"max_attempts": 0}}, "max_attempts"), ({"type": "mail", "options": {"timeout": 0}}, "timeout"),
            ({"type": "mail", "options": {"traceparent": "00"}}, "traceparent"), ({"type": "mail", "options": {"unique": "a:b"}}, "unique"),
        ):
            e = refusal(q, "enqueue", **arguments)
            assert (e.kind, e.member) == ("invalid", member), f"{arguments}: {e} {e.member}"
        for size in (1 << 20, 3 << 20):
            assert refusal(q, "enqueue", type="mail", args="x" * size).kind == "invalid"
        assert q("enqueue", type="mail", args=(1 << 63) - 1)["new"]
        assert refusal(q, "enqueue", type="mail", args=1 << 63).kind == "invalid"
    assert stage.stat("mail", "enqueued") == 2


def serve(stage, start):
    """The same client over HTTP, with a token, and no right in Redis."""
    tokens = os.path.join(stage.folder, "tokens")
    with open(os.open(tokens, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
        file.write("producer,viewer 5fJ9gT1aPq7uEo3iK6zXw2Vb robot\n")
    url = stage.serve("--allow-enqueue", "--token-file", tokens)
    q = start(url=url, token="5fJ9gT1aPq7uEo3iK6zXw2Vb")
    assert q("enqueue", type="mail", options={"id": "h1", "delay": 60})["new"]
    assert q("enqueue_many", type="mail", count=1500, batch="b")["jobs"] == 1500
    assert q("job", id="h1")["state"] == "scheduled"
    stage.weir("rate", "set", "openai", "1/1h")
    assert q("take", limit="openai")["allowed"] and not q("take", limit="openai")["allowed"]
    assert refusal(q, "cancel", id="h1").kind == "refused"
    assert refusal(start(url=url, token="x" * 20), "enqueue", type="mail").kind == "refused"
    assert refusal(start(url="http://127.0.0.1:1"), "enqueue", type="mail").kind == "unreachable"


def lost_over_http(stage, start):
    """An answer of no Weir, from a proxy or as weir serve lost Redis, does not say what was done: it is asked for again."""
    answers = [(502, b"<h1>Bad Gateway</h1>"), (504, b'{"error":"connection lost"}'), (200, b'{"id":"m1","new":false}')]

    class Gateway(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            status, body = answers.pop(0)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Gateway) as gateway:
        threading.Thread(target=gateway.serve_forever, daemon=True).start()
        q = start(url=f"http://127.0.0.1:{gateway.server_port}")
        assert q("enqueue", type="mail", options={"id": "m1"})["new"] is False
        gateway.shutdown()
    assert not answers


def slots_of_two_processes(stage, start):
    """A slot that one has taken is not there for the other; a denial is remembered."""
    one, two = start(), start()
    stage.weir("rate", "set", "openai", "5/1h")
    answers = [q("take", limit="openai") for _ in range(5) for q in (one, two)]
    assert [a["allowed"] for a in answers] == [True] * 5 + [False] * 5, answers
    denied = refusal(two, "slot", limit="openai")
    assert denied.kind == "denied" and 600 < denied.retry_after <= 720, denied.retry_after
    calls = calls_of_redis(stage.try_redis)
    for _ in range(50):
        assert not two("take", limit="openai")["allowed"]
    assert calls_of_redis(stage.try_redis) - calls < 25, "denials are not remembered"
    assert refusal(one, "slot", limit="openai", cost=9).retry_after is None
    assert one("rate", limit="openai")["limit"] == 5
    assert refusal(one, "take", limit="nobody").kind == "missing"
    assert refusal(one, "take", limit="openai", key="k").kind == "invalid"
    stage.weir("rate", "set", "sms", "10/s,burst=1")
    slots = [one("slot", limit="sms", wait=5) for _ in range(4)]
    assert all(slot["allowed"] for slot in slots)
    stage.weir("rate", "set", "keyed", "1/1h,by=key")
    assert one("take", limit="keyed", key="any text: ü")["allowed"] and one("take", limit="keyed", key="k")["allowed"]
    assert not two("take", limit="keyed", key="any text: ü")["allowed"]


def holders(stage, limit):
    return json.loads(stage.weir("rate", "show", limit, "--json"))["held_by"]


def slots_on_lease(stage, start):
    """A hold is renewed while its block runs. Its process is killed: another one has the slot when the lease is over, not before. What somebody
    ends is lost."""
    one, two, web = start(), start(), start(url=stage.serve())
    stage.weir("rate", "set", "gpu", "concurrency=1")
    one.tell("hold", limit="gpu", ttl=5, seconds=60)
    await_that("it holds", lambda: holders(stage, "gpu"))
    time.sleep(6)
    assert refusal(two, "hold", limit="gpu").kind == "denied"
    assert refusal(web, "hold", limit="gpu", wait=0.3).kind == "denied"
    one.process.kill()
    [last] = holders(stage, "gpu")
    two.tell("hold", limit="gpu", wait=60, ttl=20, seconds=3)
    await_that("the other holds", lambda: [holder for holder in holders(stage, "gpu") if holder["token"] != last["token"]])
    [other] = holders(stage, "gpu")
    assert last["until"] <= other["since"], (last, other)
    assert two.hear() == other["token"]
    assert web("hold", limit="gpu", wait=60, seconds=0.1)
    two.tell("hold", limit="gpu", ttl=20, seconds=5)
    stage.weir("hold", "end", await_that("it holds", lambda: holders(stage, "gpu"))[0]["token"])
    assert refusal(two.hear).kind == "missing"
    stage.weir("rate", "set", "api", "10/1h")
    assert web("hold", limit="api", cost=8, spent=1)
    assert refusal(web, "hold", limit="api", cost=10).retry_after > 60
    assert web("hold", limit="api", cost=9)
    assert refusal(web, "hold", limit="api", cost=11).retry_after is None


def calls_of_redis(ask):
    lines = ask("INFO", "commandstats").splitlines()
    return sum(int(line.split("calls=")[1].split(",")[0]) for line in lines if line.startswith("cmdstat_fcall"))


def handlers(stage, start):
    """Each end of a job; what is printed does not matter."""
    q = start()
    for how in ("done", "print", "retry", "dead", "throttled", "spent", "fail"):
        q("enqueue", type="story", args={"do": how}, options={"id": how.replace(" ", "-"), "max_attempts": 3})
    stage.weir("rate", "set", "story", "1000/s")
    worker = pipe(stage, "story", more=("--backoff", "story=100ms..200ms"))
    await_that("all have ended", lambda: stage.stat("story", "done") == 5 and stage.stat("story", "dead") == 2)
    attempts = {}
    for job in stage.jobs():
        attempts.setdefault(job["id"], []).append(job["attempt"])
    assert attempts == {"done": [1], "print": [1], "retry": [1, 2], "dead": [1], "throttled": [1, 1], "spent": [1],
                        "fail": [1, 2, 3]}, attempts
    dead = stage.weir("dead", "list")
    assert "no such number" in dead and "a plain failure" in dead, dead
    log = stage.read("worker.log")
    for line in ("a stray line", "a stray end", "from a program that it started"):
        assert line in log, line
    assert "wrong answer" not in log and "died" not in log, log
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(20) == 0


def results(stage, start):
    """What a handler left is there for who waits for the job, over both carriers."""
    q = start()
    pipe(stage, "story", "many", more=("--keep", "story=1h"))
    value = {"sent": [1, 2.5, None], "to": "ann <&> \u2028 ü"}
    for q in (q, start(url=stage.serve("--allow-enqueue"))):
        ended = q("wait", id=q("enqueue", type="story", args={"do": "result", "value": value})["id"], seconds=60)
        assert (ended["state"], ended["outcome"], ended["result"]) == ("finished", "done", value), ended
    ended = q("wait", id=q("enqueue", type="story", args={"do": "result"})["id"], seconds=60)
    assert ended["state"] == "finished" and ended.get("result") is None, ended
    assert "wrong result: 70002 bytes: at most 65536 are kept" in stage.read("worker.log")
    assert q("wait", id=q("enqueue", type="story", args={"do": "dead"})["id"], seconds=60)["reason"] == "no such number"
    later = q("enqueue", type="story", options={"delay": 60})["id"]
    assert q("wait", id=later, seconds=0.2)["state"] == "scheduled"
    gone = q("enqueue", type="many")["id"]
    assert refusal(q, "wait", id=gone, seconds=60).kind == "missing"


def lines_and_deaths(stage, start):
    """A job of nearly 1 MiB, one with U+2028 and CRLF; a child that is killed in the middle of a job: all of them run."""
    q = start()
    texts = ["x" * 1000000, "a\u2028b\r\nc\\u2028"]
    for text in texts:
        q("enqueue", type="many", args={"text": text})
    for n in range(5):
        q("enqueue", type="story", args={"do": "kill" if n == 2 else "done"}, options={"id": f"n{n}"})
    pipe(stage, "many", "story")
    await_that("all are done", lambda: stage.stat("story", "done") == 5 and stage.stat("many", "done") == 2)
    assert sorted(job["args"]["text"] for job in stage.jobs() if job["type"] == "many") == sorted(texts)
    assert [job["attempt"] for job in stage.jobs() if job["id"] == "n2"] == [1, 1]


def several_at_a_time_and_stopping(stage, start):
    """Jobs of one child overlap; told to stop, it finishes what it has."""
    q = start()
    types = ["story"] + (["async"] if stage.has_async else [])
    for type in types:
        for n in range(4):
            q("enqueue", type=type, args={"do": "slow", "seconds": 2, "n": n})
    worker = pipe(stage, *types)
    await_that("all have begun", lambda: sum("ended" not in job for job in stage.jobs()) == 4 * len(types))
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(20) == 0
    for type in types:
        lines = [job for job in stage.jobs() if job["type"] == type]
        assert "ended" not in lines[1], "they did not overlap"
        assert len({job["pid"] for job in lines}) == 1 and len(lines) == 8, lines
        assert stage.stat(type, "done") == 4


def cancelling(stage, start):
    q = start()
    q("enqueue", type="story", args={"do": "until cancelled"}, options={"id": "long"})
    pipe(stage, "story")
    await_that("it runs", stage.jobs)
    assert q("cancel", id="long") == "told"
    await_that("it heard of it", lambda: any("ended" in job for job in stage.jobs()))
    await_that("it has ended", lambda: stage.stat("story", "cancelled") + stage.stat("story", "done") == 1)


def a_rate(stage, start):
    """A rate is kept, as weir verify judges by the trace."""
    q = start()
    stage.weir("rate", "set", "many", "40/s,burst=1")
    q("enqueue_many", type="many", count=60)
    pipe(stage, "many", more=("--trace", os.path.join(stage.folder, "trace")))
    await_that("all have run", lambda: len(stage.jobs()) == 60)
    await_that("all are settled", lambda: stage.stat("many", "done") == 60)
    stage.weir("verify", "trace")


def redis_killed_and_back(stage, start):
    """While it is away a call fails at once, or goes on when it is back where the client cannot know that nothing was sent."""
    q = start()
    assert q("enqueue", type="mail", options={"id": "before"})["new"]
    stage.kill_redis()
    assert refusal(start(), "enqueue", type="mail").kind == "unreachable"
    back = threading.Timer(1.5, stage.start_redis)
    back.start()
    try:
        assert q("enqueue", type="mail", options={"id": "between"})["new"]
    except Refused as e:
        assert e.kind == "unreachable", e
    back.join()
    q("enqueue", type="mail", options={"id": "between"})
    assert not q("enqueue", type="mail", options={"id": "before"})["new"]
    assert stage.stat("mail", "enqueued") == 2


def functions_flushed(stage, start):
    """Functions are gone, and come back with the next worker. Then it goes on, with the words of another version too."""
    q = start()
    assert q("enqueue", type="mail")["new"]
    stage.try_redis("FUNCTION", "FLUSH")
    assert refusal(q, "enqueue", type="mail").kind == "unreachable"
    stage.begin()
    assert q("enqueue", type="mail")["new"]


def another_version(stage, start):
    """While it is connected, the function gets another name: it reads that, and goes on."""
    q = start()
    assert q("enqueue", type="mail")["new"]
    about = json.loads(stage.try_redis("HGET", "weir:{0}:about", "protocol"))
    words = about["verbs"]["enqueue"]
    source = stage.try_redis("FUNCTION", "LIST", "WITHCODE")
    assert words[1] in source or words[0] != "FCALL"
    library = "#!lua name=other\nredis.register_function('other_call', function(keys, argv) return '{\"id\":\"other\",\"new\":true}' end)"
    stage.try_redis("FUNCTION", "LOAD", library)
    about["verbs"]["enqueue"] = ["FCALL", "other_call", *words[2:]]
    stage.try_redis("HSET", "weir:{0}:about", "protocol", json.dumps(about))
    assert q("enqueue", type="mail")["new"], "the words that it knows go on to work"
    stage.try_redis("FUNCTION", "FLUSH")
    stage.try_redis("FUNCTION", "LOAD", library)
    assert q("enqueue", type="mail")["id"] == "other"


def rights(stage, start):
    """A user without a right is told so, in one clear error."""
    stage.try_redis("ACL", "SETUSER", "nobody", "on", ">secret", "~*", "+ping", "+hello", "+client", "+select")
    port = str(free_port())
    stage.try_redis("CONFIG", "SET", "port", port)
    for user, words in (("nobody:secret", "weir acl"), ("nobody:wrong", "")):
        e = refusal(start(url=f"redis://{user}@127.0.0.1:{port}"), "enqueue", type="mail")
        assert e.kind == "refused" and words in e.message, e


def partitions(stage, start):
    """What lives elsewhere is asked there."""
    stage.try_redis("FLUSHALL")
    stage.weir("init", "--partitions", "4")
    stage.begin()
    q = start()
    ids = [q("enqueue", type=f"type{n}", options={"delay": 60})["id"] for n in range(8)]
    assert [q("job", id=id)["type"] for id in ids] == [f"type{n}" for n in range(8)]
    assert [q("cancel", id=id) for id in ids] == ["removed"] * 8
    for type in ("type1", "type2", "type3", "type4"):
        assert q("enqueue_many", type=type, count=1500)["jobs"] == 1500
        q("enqueue", type=type, options={"id": "last-" + type})
        assert q("job", id="last-" + type)["state"] == "waiting"
    assert refusal(q, "job", id="nobody").kind == "missing"
    for name in ("mail", "news", "sms", "call"):
        assert q("enqueue_many", type=name, count=1200, batch=f"{name}.week-47")["jobs"] == 1200
        assert q("batch", name=f"{name}.week-47")["total"] == 1200
        stage.weir("rate", "set", name, "1/1h")
        assert [q("take", limit=name)["allowed"] for _ in range(2)] == [True, False]


def a_little_of_all(stage, q, types):
    for type in types:
        stage.weir("rate", "set", type, "1/1h")
        id = q("enqueue", type=type, options={"delay": 3600})["id"]
        assert (q("job", id=id)["state"], q("cancel", id=id)) == ("scheduled", "removed")
        assert q("enqueue_many", type=type, count=1200, batch=f"{type}.week-47")["jobs"] == 1200
        assert q("batch", name=f"{type}.week-47")["total"] == 1200
        assert [q("take", limit=type)["allowed"] for _ in range(2)] == [True, False]


def of_a_cluster(stage, start):
    """Two masters with two partitions each; the library finds the node, the client the partition."""
    nodes = [stage.redis_at("--cluster-enabled", "yes", "--cluster-port", str(free_port())) for _ in range(2)]
    for (_, _, ask), slots in zip(nodes, (("0", "8191"), ("8192", "16383"))):
        ask("CLUSTER", "ADDSLOTSRANGE", *slots)
    ports = [port for _, port, _ in nodes]
    bus = nodes[1][2]("CONFIG", "GET", "cluster-port").split()[-1]
    nodes[0][2]("CLUSTER", "MEET", "127.0.0.1", ports[1], bus)
    await_that("the cluster is one", lambda: all("cluster_state:ok" in ask("CLUSTER", "INFO") for _, _, ask in nodes))
    stage.url = f"redis+cluster://127.0.0.1:{ports[0]}"
    stage.weir("init", "--partitions", "4")
    stage.begin()
    a_little_of_all(stage, start(url=f"redis://127.0.0.1:{ports[1]}", to="cluster"), ("mail", "news", "sms", "call"))
    calls = [calls_of_redis(ask) for _, _, ask in nodes]
    assert min(calls) > 8, f"one of the nodes had nothing to do: {calls}"


def over_tls(stage, start):
    """A password, and a certificate of an issuer that has to be named."""
    key, crt = (os.path.join(stage.folder, f"redis.{ending}") for ending in ("key", "crt"))
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=weir",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", crt], check=True, capture_output=True)
    _, port, _ = stage.redis_at("--requirepass", "secret", "--tls-cert-file", crt, "--tls-key-file", key, "--tls-auth-clients", "no",
                                redis_cli=("--tls", "--cacert", crt, "-a", "secret", "--no-auth-warning"))
    url = f"rediss://:secret@127.0.0.1:{port}"
    stage.url = f"{url}?cacert={crt}"
    stage.begin()
    a_little_of_all(stage, start(url=url, to="tls", ca=crt), ("mail",))
    assert refusal(start(url=url), "enqueue", type="mail").kind == "unreachable"


def through_sentinels(stage, start):
    """The master dies. Its replica takes over, and the same connection goes on."""
    master, port, ask = stage.redis_at(name="master")
    _, _, ask_replica = stage.redis_at("--replicaof", "127.0.0.1", port, "--repl-diskless-sync-delay", "0", name="replica")
    await_that("the replica has all", lambda: "master_link_status:up" in ask_replica("INFO", "replication"))
    conf = os.path.join(stage.folder, "sentinel.conf")
    with open(conf, "w") as file:
        file.write(f"sentinel monitor mymaster 127.0.0.1 {port} 1\nsentinel down-after-milliseconds mymaster 500\n"
                   "sentinel failover-timeout mymaster 4000\n")
    _, sentinel, ask_sentinel = stage.redis_at(conf, "--sentinel", name="sentinel")
    await_that("the Sentinel knows the replica", lambda: "slaves=1" in ask_sentinel("INFO", "sentinel"))
    stage.url = f"redis+sentinel://127.0.0.1:{sentinel}/mymaster"
    stage.begin()
    q = start(url=f"redis://127.0.0.1:{sentinel}", to="sentinel")
    a_little_of_all(stage, q, ("mail",))
    assert q("enqueue", type="mail", options={"id": "before"})["new"]
    await_that("the replica has the job", lambda: ask("WAIT", "1", "1000") == "1")
    master.kill()

    def again():
        try:
            return q("enqueue", type="mail", options={"id": "after"})
        except Refused as e:
            assert e.kind in ("unreachable", "unknown"), e

    await_that("the job arrives", again)
    assert [q("job", id=id)["state"] for id in ("before", "after")] == ["waiting"] * 2
    assert q("batch", name="mail.week-47")["total"] == 1200


def test_mode(stage, start):
    """No server: a list of jobs, drain, a clock that moves, limits that deny."""
    q = start(way="fake", url="unix:///nowhere")
    assert q("enqueue", type="mail", args={"to": 1}, options={"delay": 60})["new"]
    assert [job["args"] for job in q("jobs", type="mail")] == [{"to": 1}]
    assert q("drain", types=["mail"]) == []
    q("move", seconds=60)
    assert q("drain", types=["mail"]) == [{"to": 1}]
    assert q("jobs", type="mail") == []
    done = q("enqueue_many", type="many", count=2500, batch="b", then="report")
    assert done == {"lines": 2500, "jobs": 2500, "resumed": 0}, done
    q("set_rate", name="many", rules="10/s")
    assert len(q("drain", types=["many"])) == 1 + 10
    q("move", seconds=1)
    assert len(q("drain", types=["many"])) == 1 + 20
    q("set_rate", name="openai", rules="2/1h")
    assert [q("take", limit="openai")["allowed"] for _ in range(3)] == [True, True, False]
    assert refusal(q, "slot", limit="openai").retry_after == 1800
    q("move", seconds=1800)
    assert q("slot", limit="openai")["allowed"]
    assert q("slot", limit="openai", wait=3600)["allowed"]
    q("set_rate", name="gpu", rules="concurrency=1")
    for _ in range(2):
        assert q("hold", limit="gpu", ttl=5, seconds=9)
    assert q("call", verb="hold", text='{"limit":"gpu","tag":"a"}')["allowed"]
    assert refusal(q, "hold", limit="gpu").kind == "denied"
    assert q("hold", limit="gpu", wait=40), "it is over in 30 s"
    assert refusal(q, "take", limit="gpu").kind == "invalid"
    assert refusal(q, "enqueue", type="a b").member == "type"
    assert refusal(q, "take", limit="nobody").kind == "missing"
    first = q("enqueue", type="sync", options={"unique": "u"})
    assert q("enqueue", type="sync", options={"unique": "u"})["id"] == first["id"]
    q("set_rate", name="calls", rules="10/s,by=key")
    for key in ("a", "a", "b"):
        q("enqueue", type="calls", args={"do": "throttled"}, options={"key": key})
    q("drain", types=["calls"])  # its provider has said stop: the limit pauses for that key alone
    assert [job["key"] for job in q("jobs", type="calls")] == ["a", "a"]
    q("move", seconds=2)
    q("drain", types=["calls"])
    assert q("jobs", type="calls") == []
    q("keep", type="kept", seconds=60)
    kept = q("enqueue", type="kept", args=[1])["id"]
    for seconds in (5, 1.5e-6, *[0.2] * 40):  # at whatever fraction of a second the clock stands
        assert q("wait", id=kept, seconds=seconds)["state"] == "waiting"
    q("drain", types=["kept"])
    ended = q("wait", id=kept, seconds=5)
    assert (ended["state"], ended["attempts"], ended["outcome"], ended["result"]) == ("finished", 1, "done", [1]), ended
    assert refusal(q, "cancel", id=kept).kind == "closed"
    q("move", seconds=61)
    assert refusal(q, "job", id=kept).kind == "missing"


CASES = [bulk_over_a_cut_connection, bulk_without_a_batch, one_job, unique, wrong_input, serve, lost_over_http, slots_of_two_processes, slots_on_lease,
         handlers, results, lines_and_deaths, several_at_a_time_and_stopping, cancelling, a_rate, redis_killed_and_back, functions_flushed, another_version, rights,
         partitions, of_a_cluster, over_tls, through_sentinels, test_mode]
