"""What needs no server: documents, refusals before they are sent, the words of Redis, denials, tasks, the test mode."""
import asyncio
import json
import unittest
from datetime import datetime, timedelta, timezone

import redis

import weir
from weir import carriers, protocol


def finish(steps, *results):
    """Feeds a generator what comes of its steps; returns the steps and the result."""
    seen, results = [], list(results)
    step = next(steps)
    try:
        while True:
            seen.append(step)
            result = results.pop(0)
            step = steps.throw(result) if isinstance(result, Exception) else steps.send(result)
    except StopIteration as end:
        return seen, end.value


class Documents(unittest.TestCase):
    def refused(self, member, args=None, **options):
        with self.assertRaises(weir.Invalid) as caught:
            protocol.text_of(protocol.job_document("mail", args, **options))
        self.assertEqual(caught.exception.member, member)

    def test_what_is_no_json_is_refused_before_it_is_sent(self):
        deep = []
        for _ in range(100000):
            deep = [deep]
        for args in (float("nan"), float("inf"), "\ud800", {"\udc00": 1}, {1, 2}, object(), b"bytes", deep):
            self.refused("args", args)
        self.refused("meta", meta=[float("-inf")])
        self.refused("id", id="\ud800")
        self.refused("at", at=datetime(2027, 1, 1))
        self.assertRaises(TypeError, protocol.job_document, "mail", 1, delya=5)

    def test_times(self):
        document = protocol.job_document("mail", 1, delay=timedelta(minutes=2), timeout=timedelta(seconds=1.5), remember=timedelta(days=1))
        self.assertEqual((document["in"], document["timeout"], document["remember"]), (120.0, 1.5, 86400))
        self.assertEqual(protocol.job_document("mail", 1, at=datetime(1970, 1, 2, tzinfo=timezone.utc))["at"], 86400.0)

    def test_text(self):
        text = protocol.text_of(protocol.job_document("mail", {"a": "<ü\u2028>", "n": 2**63 - 1}, id="j"))
        self.assertEqual(text, '{"id":"j","type":"mail","args":{"a":"<ü\u2028>","n":9223372036854775807}}')

    def test_a_made_id_is_remembered_for_a_minute(self):
        document = protocol.job_document("mail", None)
        self.assertRegex(document["id"], "^[a-z0-9]{16}$")
        self.assertEqual(document["remember"], 60)
        self.assertNotIn("args", document)


class Redis(unittest.TestCase):
    words = json.dumps({"protocol": 1, "verbs": {"job": ["FCALL_RO", "f", "1", "k"]}})

    def test_words_are_read_once(self):
        words = protocol.Words("ns")
        seen, answer = finish(words.call("job", "{}"), self.words, b'{"id":"j"}')
        self.assertEqual(seen, [("HGET", "ns:{0}:about", "protocol"), ("FCALL_RO", "f", "1", "k", "job", b"{}")])
        self.assertEqual(answer, '{"id":"j"}')
        self.assertEqual(len(finish(words.call("job", "{}"), "{}")[0]), 1)

    def test_another_version_is_read_once(self):
        words = protocol.Words("ns")
        missing = protocol.FunctionMissing("Function not found")
        with self.assertRaises(weir.Unreachable):
            finish(words.call("job", "{}"), self.words, missing)
        finish(words.call("job", "{}"), self.words, "{}")
        seen, _ = finish(words.call("job", "{}"), missing, self.words.replace('"f"', '"g"'), "{}")
        self.assertEqual([step[1] for step in seen], ["f", "ns:{0}:about", "g"])
        with self.assertRaises(weir.Unreachable):
            finish(words.call("job", "{}"), missing, self.words, missing)

    def test_no_weir(self):
        for about in (None, "", "oops", '{"protocol":2}', '{"protocol":1,"verbs":{}}'):
            with self.assertRaises(weir.Unreachable):
                finish(protocol.Words("ns").call("job", "{}"), about)

    def test_elsewhere(self):
        words = protocol.Words("ns")
        seen, answer = finish(words.call("job", "{}"), self.words, '{"elsewhere":"ns:{3}:"}', self.words.replace('"k"', '"k3"'), "{}")
        self.assertEqual(seen[2:], [("HGET", "ns:{3}:about", "protocol"), ("FCALL_RO", "f", "1", "k3", "job", b"{}")])
        with self.assertRaises(weir.Unreachable):
            finish(words.call("job", "{}"), *(['{"elsewhere":"ns:{3}:"}'] * 100))

    def test_failures(self):
        e = redis.exceptions
        for error, kind in (
            (e.ConnectionError("Error 111 connecting to unix socket: /x. Connection refused."), weir.Unreachable),
            (e.ConnectionError("Connection closed by server."), protocol.Lost), (e.TimeoutError("Timeout reading from socket"), protocol.Lost),
            (e.BusyLoadingError("Redis is loading the dataset in memory"), weir.Unreachable), (ConnectionResetError("reset"), protocol.Lost),
            (e.ReadOnlyError("You can't write against a read only replica."), weir.Unreachable),
            (e.NoPermissionError("this user has no permissions to run the 'fcall' command"), weir.Refused),
            (e.AuthenticationError("invalid username-password pair"), weir.Refused), (e.ResponseError("NOPERM no"), weir.Refused),
            (e.ResponseError("Function not found"), protocol.FunctionMissing), (e.ResponseError("OOM command not allowed"), weir.Unreachable),
        ):
            self.assertIsInstance(carriers.redis_failure(error), kind, error)


class Answers(unittest.TestCase):
    def test_refusals(self):
        for kind, error in (("invalid", weir.Invalid), ("missing", weir.Missing), ("closed", weir.Closed), ("rights", weir.Refused),
                            ("unavailable", weir.Unreachable), ("new one", weir.Error)):
            with self.assertRaises(error):
                protocol.read_answer(json.dumps({"refused": kind, "why": "it is", "more": 1}))
        for text in ("", "OK", "[]", '"x"', "<html>"):
            with self.assertRaises(weir.Unreachable):
                protocol.read_answer(text)

    def test_a_lost_answer_is_asked_for_again(self):
        lost, steps = protocol.Lost("cut"), protocol.enqueue("mail", 1, id="m")
        seen, id = finish(steps, lost, None, lost, None, weir.Unreachable("connecting"), None, '{"id":"m","new":false}')
        calls = [step for step in seen if isinstance(step, protocol.Call)]
        self.assertEqual((len(calls), len(set(calls)), id), (4, 1, "m"))
        with self.assertRaises(weir.Unreachable):
            finish(protocol.enqueue("mail", 1), weir.Unreachable("connecting"))

    def test_the_outcome_is_unknown_in_the_end(self):
        before, protocol.GIVE_UP_S = protocol.GIVE_UP_S, -1
        try:
            with self.assertRaises(weir.Unknown) as caught:
                finish(protocol.enqueue("mail", 1, id="m"), protocol.Lost("cut"))
        finally:
            protocol.GIVE_UP_S = before
        self.assertEqual(caught.exception.id, "m")

    def test_denials(self):
        denials, now = protocol.Denials(), [100.0]
        take = lambda fresh=False: protocol.take(denials, lambda: now[0], "l", None, 1, 0, fresh)
        denied = '{"allowed":false,"limit":1,"remaining":0,"reset_after":9,"retry_after":0.5}'
        finish(take(), denied)
        now[0] += 0.2
        with self.assertRaises(StopIteration) as end:
            next(take())
        self.assertAlmostEqual(end.exception.value.retry_after, 0.3)
        self.assertEqual(len(finish(take(True), denied)[0]), 1)
        now[0] += 0.6
        self.assertEqual(len(finish(take(), denied.replace("0.5", "3600"))[0]), 1)
        now[0] += 1.1
        self.assertEqual(len(finish(take(), denied)[0]), 1)
        for n in range(3000):
            denials.keep(n, now[0], json.loads(denied))
        self.assertEqual(len(denials.kept), protocol.DENIALS_MOST)

    def test_in_line(self):
        now = [0.0]
        steps = protocol.take(protocol.Denials(), lambda: now[0], "l", None, 1, 30, False)
        first = next(steps)
        place = '{"allowed":false,"limit":1,"remaining":0,"reset_after":9,"retry_after":5,"place":"p","ask_after":5}'
        self.assertEqual(steps.send(place), protocol.Sleep(5))
        now[0] = 5.0
        self.assertEqual(json.loads(steps.send(None).text), {"limit": "l", "wait": 25.0, "place": "p"})
        steps.send(place)
        leave = steps.throw(KeyboardInterrupt())
        self.assertEqual(json.loads(leave.text), {"limit": "l", "place": "p", "leave": True})
        self.assertRaises(KeyboardInterrupt, steps.send, '{"left":true}')
        self.assertEqual(json.loads(first.text), {"limit": "l", "wait": 30})


class Bulks(unittest.TestCase):
    def test_a_changed_input_is_refused(self):
        with weir.testing.fake() as t:
            q = weir.Client()
            q.enqueue_many("mail", range(10), batch="b")
            for rows in (range(5), [0, 1, 2, 3, 4, 5, 6, 7, 8, 10], []):
                with self.assertRaises(weir.Invalid):
                    q.enqueue_many("mail", rows, batch="b")
            self.assertEqual(len(t.jobs()), 10)
            with self.assertRaises(weir.Invalid):
                q.enqueue_many("mail", range(3), then="report")

    def test_a_row_that_is_wrong_is_named(self):
        with weir.testing.fake() as t:
            for rows, line in (([*range(1500), float("nan")], 1501), ([*range(1500), 2**63], 1501), ([{}, "\0"], 2)):
                with self.assertRaises(weir.Invalid) as caught:
                    weir.Client().enqueue_many("mail", rows)
                self.assertEqual(caught.exception.line, line)
            with self.assertRaises(weir.Invalid) as caught:
                weir.Client().enqueue_many(None, [{"type": "a"}, {"type": "a", "delay": 1}])
            self.assertEqual((caught.exception.line, caught.exception.member), (2, "delay"))
            weir.Client().enqueue_many(None, [{"type": "a", "args": 1}, {"type": "b", "queue": "high"}])
            self.assertEqual([job["type"] for job in t.jobs()][-2:], ["a", "b"])

    def test_what_the_rows_raise_is_raised(self):
        def rows():
            yield 1
            raise KeyError("mine")

        with weir.testing.fake(), self.assertRaises(KeyError):
            weir.Client().enqueue_many("mail", rows())

    def test_asynchronous_rows(self):
        async def rows():
            for n in range(3):
                yield n

        async def main():
            return await weir.aio.Client().enqueue_many("mail", rows())

        with weir.testing.fake() as t:
            self.assertEqual(asyncio.run(main()).jobs, 3)
            self.assertEqual(t.args("mail"), [0, 1, 2])


class Handlers(unittest.TestCase):
    def test_tasks(self):
        own = weir.Handlers()

        @own.task(type="sum", cost=2)
        def add(a, b=1):
            return a + b

        @own.task
        async def later(a):
            done.append(a)

        done = []
        self.assertEqual(add(1, b=2), 3)
        with weir.testing.fake() as t:
            add.delay(1, b=5)
            later.options(delay=5).enqueue(7)
            self.assertRaises(TypeError, add.enqueue, 1, c=2)
            self.assertEqual(t.jobs("sum")[0], {"id": t.jobs("sum")[0]["id"], "type": "sum", "cost": 2, "args": {"a": 1, "b": 5}})
            self.assertEqual(t.drain(own), 1)
            t.move(5)
            self.assertEqual((t.drain(own), done), (1, [7]))
        for wrong in (lambda *a: 0, lambda **a: 0):
            self.assertRaises(TypeError, own.task, wrong)
        self.assertRaises(ValueError, own.handler("sum"), print)

    def test_answers(self):
        from weir.handlers import answer_of

        job = weir.Job({"id": "j", "type": "t"})
        for error, answer in (
            (None, {"status": "done"}), (weir.Retry("why", after=2), {"status": "retry", "after": 2.0, "reason": "why"}),
            (weir.Throttled(3), {"status": "throttled", "after": 3.0}), (weir.Throttled(), {"status": "throttled"}),
            (weir.Dead("no"), {"status": "dead", "reason": "no"}), (KeyError("k"), {"status": "retry", "reason": "KeyError: 'k'"}),
            (weir.Retry(after=float("nan")), {"status": "retry"}), (weir.Dead("\ud800"), {"status": "dead", "reason": "?"}),
            (weir.Retry(after=timedelta(minutes=1)), {"status": "retry", "after": 60.0}),
            (weir.Denied("d", 4), {"status": "retry", "after": 4.0, "reason": "Denied: d"}),
        ):
            self.assertEqual(answer_of(job, error), {"id": "j", **answer})
        for spent, member in ((3, "cost"), ({"tokens": 3}, "spent")):
            job.spent(spent)
            self.assertEqual(answer_of(job, None), {"id": "j", "status": "done", member: spent})

    def test_an_error_that_cannot_be_told_is_one(self):
        from weir.handlers import answer_of

        class Silent(Exception):
            def __str__(self):
                raise KeyError("silence")

        job = weir.Job({"id": "j", "type": "t"})
        for error in (Silent(), weir.Retry(after="soon"), weir.Dead(7)):
            self.assertEqual(answer_of(job, error)["status"], "retry")

    def test_a_limit_with_keys_pauses_one(self):
        own, told = weir.Handlers(), []

        @own.handler("mail")
        def mail(job):
            told.append(job.key)
            if len(told) == 1:
                raise weir.Throttled(60)

        with weir.testing.fake() as t:
            t.rate("mail", "100/s,by=key")
            for key in ("a", "a", "b"):
                weir.Client().enqueue("mail", key=key)
            self.assertEqual((t.drain(own), told), (2, ["a", "b"]))
            self.assertEqual(weir.Client().rate("mail", "a").retry_after, 60)
            t.move(60)
            self.assertEqual((t.drain(own), told), (2, ["a", "b", "a", "a"]))

    def test_ends_in_the_test_mode(self):
        own, left = weir.Handlers(), [weir.Throttled(5), weir.Retry(after=60), ValueError("x"), None]

        @own.handler("mail")
        def mail(job):
            error = left.pop(0)
            if error:
                raise error

        with weir.testing.fake() as t:
            t.rate("mail", "100/s")
            weir.Client().enqueue("mail", batch="b", id="j")
            for seconds, state in ((0, "waiting"), (5, "retry"), (60, "retry"), (31, None)):
                t.move(seconds)
                self.assertEqual(t.drain(own), 1)
                self.assertEqual(t.drain(own), 0)
                self.assertEqual([job["id"] for job in t.jobs(state=state)], ["j"] if state else [])
            self.assertEqual((t.now and weir.Client().batch("b")["done"], weir.Client().batch("b")["failed"]), (1, 2))


if __name__ == "__main__":
    unittest.main()
