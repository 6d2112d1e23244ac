"""Random documents, right and wrong ones, to the test mode of a language and to the real Weir: both answer and refuse alike, but for their
words and for what depends on the time; and so do both of limits. WEIR_SEED=N DOCUMENTS=N chooses others."""
import json
import os
import random

from stage import Refused
from vectors import ask

LIMITS = {"mail": "2/1h", "keyed": "2/1h,by=key", "two": "5/1h 2/1h,burst=2", "flight": "concurrency=2", "jobs": "2/1h,of=jobs 9/1h"}
RULES = """1/s 1/1s 10/0.5ms 1/1.000001s 1/1.5us 1/0.5us 1/.5s 1/1.s 1/0s 1/3650d 1/3651d 1/99999999999999999999w 1000000000/1d 1000000001/1d 0/1s
1000000/s 1000001/s 10/1s, 10/1s,burst=1 10/1s,burst=0 10/1s,burst=1000000001 1/3650d,burst=2 1/3650d,burst=3 10/1s,burst=5,burst=5 10/1s,color=1 10/1s,by=key
10/1s,by=key.x 10/1s,by=keys 10/1s,by=args 10/1s,by=meta 10/1s,by=args.a.b-C_9 10/1s,by=args..a 10/1s,by=args. 10/1s,by=customer 10/1s,by=key,by=key
10/1s,algorithm=token-bucket,burst=2 10/1s,burst=2,algorithm=fixed-window 10000/1s,algorithm=sliding-log 10001/1s,algorithm=sliding-log
10/1s,of=jobs 10/1s,burst=2,of=jobs,by=key 10/1s,of=jobs,of=jobs 10/1s,of=cost 10/1s,of= concurrency=5,of=jobs
10/1s,algorithm=gcra,algorithm=gcra 10/1s,algorithm=color concurrency=1 concurrency=0 concurrency=1000000001 concurrency=5,by=id concurrency=5,burst=2
concurrency=5,algorithm=gcra x 10 10/ /s 1.5/s -1/s 10/x""".split()
RULES += [f"1/1s,by=args.{'x' * 123}", f"1/1s,by=args.{'x' * 124}", "1/s,by=key 2/s 3/s,by=key", "1/s,by=key 2/s,by=id"] + [" ".join(["1/s"] * n) for n in (8, 9)]
REAL_ONLY = ["1/1mo", "5/1d,zone=UTC", "10/1s,algorithm=sliding-window", "10/1d,algorithm=fixed-window,offset=6h", "10/1s,adapt=0.5..1", "1/1h30m", "10k/1d"]
NAMES = ["a", "mail", "b.c", "x" * 128, "x" * 129, "", "a b", "é", "-", "..", "A_b-9", "a/b", "b1"]
NUMBERS = """0 1 -1 1.5 1e3 1e999 1.0 5e-324 1e-400 0.0009 315532801 4102444800 9007199254740993 9223372036854775808 -9223372036854775808
-9223372036854775809 1000000 1000001 1000000001 2592001 -0.0 01 +1 .5 1. 0x10 NaN Infinity 1e 86400.1 1E2 3""".split()
SPANS = ["5000", "5000.5", "-1", "4102444800", "4102444799.9999999", "9e9", "1e999", '"end"', '"start"', "null", "[]"]  # none ends during the test
TRACE = "-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
TEXTS = ['"end"', '""', '"a\\u0000b"', '"\\ud800"', '"\\ud83d\\ude00"', '"\\x"', '"\t"', '"\\u12"', '"\\/"', '"unclosed', "'q'", f'"00{TRACE}"',
         f'"ff{TRACE}"', f'"00{TRACE.upper()}"', '"0000000000000000"', '"000000000000000G"', '"1.1.x"', '"1.2.y_"', '"mai\\u006c"']
OTHERS = ["true", "false", "null", "[]", "{}", "[1,2]", '{"a":1,"a":2}', "[1,]", '{"a" 1}', "tru", "", "[", "[" * 510 + "]" * 510,
          "[" * 512 + "]" * 512, f'"{"k" * 1025}"', "/*c*/1", "1 2"]
LINES = ["", " ", "\t", "\r", "\f", "\u00a0", "1\0", " 1 ", "\v1", "1", '{"to":1}']
MEMBERS = {"enqueue": "type id args key cost max_attempts timeout traceparent meta queue in at unique unique_until batch remember",
           "batch": "batch seal then queue", "take": "limit key cost wait place leave", "hold": "limit key cost wait place leave ttl tag who", "renew": "token", "end": "token spent", "rate": "limit key cost", "job": "id cursor",
           "cancel": "id cursor", "about": "", "head": "batch stream offset sum type queue", "line": "type id args key cost queue"}
RIGHT = {"type": ["mail", "news", "keyed"], "key": ["k", "k2"], "unique": ["u1", "u2"], "batch": ["b1", "b2"], "stream": ["s1", "s2"],
         "then": ["r", "r2"], "limit": [*LIMITS, "nobody"], "place": ["1.1.x"], "token": ["flight~t1", "mail~t2", "nobody~t1"],
         "tag": ["t1", "t2"], "who": ["me"]}
RAW = {"cost": ["1", "2"], "max_attempts": ["5"], "timeout": ["5.5"], "offset": ["0", "1"], "seal": ["true"], "leave": ["true"], "ttl": ["60"], "spent": ["0", "1"]}
TIMES = ("reset_after", "retry_after", "ask_after", "created_at", "sealed_at", "ended_at", "enqueued_at", "start", "place", "token", "why")


class Maker:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def pick(self, *lists):
        return self.random.choice(self.random.choice(lists))

    def value(self, member):
        if member in ("in", "at", "wait", "unique_until", "remember"):
            return self.pick(SPANS)
        if self.random.random() < 0.7 and member in {**RIGHT, **RAW}:
            return self.pick(RAW[member]) if member in RAW else json.dumps(self.pick(RIGHT[member]))
        return self.pick([json.dumps(name, ensure_ascii=False) for name in NAMES], NUMBERS, TEXTS, OTHERS)

    def chance(self, share, *choices):
        return self.random.choice(choices) if self.random.random() < share else ""

    def object(self, of):
        names = MEMBERS[of].split()
        first = names[:1] if self.random.random() < 0.95 else []
        more = self.random.sample(names[1:], min(len(names[1:]), self.random.choice([0, 0, 1, 1, 2, 4])))
        names = first + more + [name for name in [self.chance(0.04, "color", "é", "args", *first)] if name]
        self.random.shuffle(names)
        blank = self.chance(0.1, " ", "\t", "\r", "\f", "\v", "\u00a0")
        text = "{" + ",".join(f"{json.dumps(name, ensure_ascii=False)}{blank}:{self.value(name)}" for name in names) + "}"
        return self.chance(0.01, "\ufeff") + text + self.chance(0.03, "x", "{}", "\0", "\f")

    def document(self):
        verb = self.random.choice(["enqueue"] * 4 + ["bulk"] * 4 + ["take"] * 2 + ["hold"] * 2 + ["renew", "end"] + ["batch", "rate", "job", "cancel", "about"])
        if verb != "bulk":
            return verb, self.object(verb)
        head = self.object("head")
        lines = [self.pick(LINES, [self.object("line")], ["1"] if '"type"' in head else ['{"type":"mail"}']) for _ in range(self.random.randrange(4))]
        return verb, "\n".join([head, *lines]) + self.chance(0.3, "\n", "\n\n")


def told(q, verb, text):
    """An answer without what may differ."""
    try:
        answer = ask(q, verb, text)
    except Refused as e:
        return {"raised": e.kind}
    if "refused" in answer:  # Go knows no empty name of a member
        return {name: answer[name] for name in ("refused", "member", "line") if answer.get(name)}
    made = '"id"' not in text or len(answer.get("id", "")) == 16
    return {name: value for name, value in answer.items() if name not in TIMES and not (name == "id" and made)}


def does(function):
    """Returns the words of who refuses; "": it is done."""
    try:
        function()
        return ""
    except (Refused, AssertionError) as e:
        return str(e) or "refused"


def run(stage, real, fake):
    for rules in RULES + REAL_ONLY:
        wrong = does(lambda: stage.weir("rate", "set", "rules", *rules.split()))
        words = does(lambda: fake("set_rate", name="rules", rules=rules))
        right = "the test mode has no" in words and not wrong if rules in REAL_ONLY else bool(wrong) == bool(words)
        assert right, f"{rules!r}: {wrong or 'set'}; the test mode: {words or 'set'}"
    seed, count = int(os.environ.get("WEIR_SEED", "1")), int(os.environ.get("DOCUMENTS", "600"))
    for name, rules in LIMITS.items():
        stage.weir("rate", "set", name, *rules.split())
        fake("set_rate", name=name, rules=rules)
    make, wrong = Maker(seed), []
    for _ in range(count):
        verb, text = make.document()
        one, other = told(real, verb, text), told(fake, verb, text)
        if one != other:
            wrong.append(f"{verb} {text[:300]!r}\n    {one}\n    the test mode: {other}")
    assert not wrong, f"WEIR_SEED={seed}: {len(wrong)} of {count}:\n" + "\n".join(wrong[:10])
