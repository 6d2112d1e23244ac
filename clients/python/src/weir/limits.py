"""Limits without a server, for weir.testing: gcra (and token-bucket, which is the same), fixed-window and sliding-log in
exact microseconds, and concurrency. What it does not know it refuses: sliding-window, months, zones, offset and adapt."""
from __future__ import annotations

import json
import re
from fractions import Fraction
from typing import Any, Dict, List, Optional, Tuple

from .errors import Cost, Invalid

_UNITS = {"us": 1, "ms": 1000, "s": 10**6, "m": 60 * 10**6, "h": 3600 * 10**6, "d": 86400 * 10**6, "w": 7 * 86400 * 10**6}
_NAME = r"\.[A-Za-z0-9_-]+"
_BY = rf",by=(?:(?:args|meta){_NAME}|id|type|cost|key|timeout|max_attempts|traceparent)(?:{_NAME})*"
_RATE = re.compile(rf"([0-9]+)/([0-9]+(?:\.[0-9]+)?)?(us|ms|s|m|h|d|w)"
                   rf"((?:,burst=[0-9]+|,algorithm=(?:gcra|token-bucket|fixed-window|sliding-log)|,of=[a-z][a-z0-9_]{{0,31}}|{_BY})*)")
_JOBS = re.compile(rf"concurrency=([0-9]+)((?:{_BY})*)")
_COUNT_MOST, _LOG_MOST, _TEN_YEARS = 10**9, 10**4, 3650 * _UNITS["d"]


class Rule:
    def __init__(self, text: str) -> None:
        self.text = text
        rate, jobs = _RATE.fullmatch(text), _JOBS.fullmatch(text)
        match = rate or jobs
        if not match:
            raise Invalid(f"rule '{text}': the test mode has no months, zones, offset=, adapt= or sliding-window; write it as "
                          "100/1m,burst=5,by=key or concurrency=5", "rules")
        given = [option.split("=") for option in match.groups()[-1].split(",")[1:]]
        options = dict(given)
        self.algorithm = options.get("algorithm", "gcra") if rate else "concurrency"
        self.by = options.get("by", "")
        self.of = options.get("of", "plain")
        self.count = int(match[1])
        self.burst = int(options.get("burst", self.count))
        period = Fraction(match[2] or 1) * _UNITS[match[3]] if rate else Fraction(_TEN_YEARS)
        self.period = int(period)
        is_window = self.algorithm in ("fixed-window", "sliding-log")
        wrong = ("of=plain is left out" if options.get("of") == "plain" else
                 "an option is there twice" if len(options) < len(given) else
                 "the path behind by= is longer than 128 characters" if len(self.by) > 128 else
                 "the count and the burst must be 1 to 1000000000" if not (1 <= self.count <= _COUNT_MOST >= self.burst >= 1) else
                 "sliding-log takes a count of at most 10000" if self.algorithm == "sliding-log" and self.count > _LOG_MOST else
                 "the period must be whole microseconds, and at most ten years" if self.period != period or not 1 <= period <= _TEN_YEARS else
                 "more than 1000000 a second" if period < self.count else
                 f"{self.algorithm} has no burst" if is_window and "burst" in options else
                 "a burst that takes more than ten years" if (self.burst - 1) * period > _TEN_YEARS * self.count else "")
        if wrong:
            raise Invalid(f"rule '{text}': {wrong}", "rules")

    def slots(self, cost: Cost, unsaid: int = 1) -> int:
        """Returns how many slots a job of that cost takes; unsaid: where it does not say."""
        if self.of == "jobs" or self.algorithm == "concurrency":
            return 1
        return (cost if isinstance(cost, dict) else {"plain": cost}).get(self.of, unsaid)


class Gate:
    """The state of a rule, of one key. Times are whole microseconds."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.tat = Fraction(0)
        self.log: List[Tuple[int, int]] = []  # starts with their costs: of a window, or of a period
        self.running = 0

    def _window(self, at: int) -> int:
        return at - at % self.rule.period

    def _live(self, now: int) -> List[Tuple[int, int]]:
        rule = self.rule
        if rule.algorithm == "fixed-window":
            return [one for one in self.log if one[0] >= self._window(now)]
        return [one for one in self.log if one[0] > now - rule.period]

    def start(self, now: int, said: Cost) -> Optional[int]:
        """Returns when such a start may be. None: never; of concurrency the far future: when a job ends."""
        rule = self.rule
        cost = rule.slots(said)
        if cost == 0:
            return now
        if rule.algorithm == "concurrency":
            return now if self.running < rule.count else 1 << 62
        if cost > rule.burst:
            return None
        if rule.algorithm in ("gcra", "token-bucket"):
            opens = self.tat - Fraction(rule.period, rule.count) * (rule.burst - cost)
            return max(now, -(-opens.numerator // opens.denominator))
        live = self._live(now)
        excess = sum(n for _, n in live) + cost - rule.count
        if excess <= 0:
            return now
        if rule.algorithm == "fixed-window":
            return self._window(now) + rule.period
        for at, n in live:
            excess -= n
            if excess <= 0:
                return at + rule.period
        raise AssertionError("a cost above the burst was answered before")

    def take(self, now: int, said: Cost) -> None:
        rule = self.rule
        cost = rule.slots(said)
        if cost == 0:
            return
        if rule.algorithm == "concurrency":
            self.running += 1
        elif rule.algorithm in ("gcra", "token-bucket"):
            if now > -(-self.tat.numerator // self.tat.denominator):
                self.tat = Fraction(now)
            self.tat += Fraction(rule.period, rule.count) * cost
        else:
            self.log = self._live(now) + [(now, cost)]

    def settle(self, at: int, said: Cost, true: Cost) -> None:
        """What started then has cost so much in truth."""
        rule = self.rule
        cost = rule.slots(said)
        spent = rule.slots(true, cost)
        if rule.algorithm in ("gcra", "token-bucket"):
            self.tat += Fraction(rule.period, rule.count) * (spent - cost)
        elif (at, cost) in self.log:
            self.log[self.log.index((at, cost))] = (at, spent)

    def remaining(self, now: int) -> int:
        rule = self.rule
        if rule.algorithm == "concurrency":
            return rule.count - self.running
        if rule.algorithm in ("gcra", "token-bucket"):
            used = max(Fraction(0), self.tat - now) * rule.count / rule.period
            return max(0, rule.burst - -(-used.numerator // used.denominator))
        return max(0, rule.count - sum(n for _, n in self._live(now)))

    def resets(self, now: int) -> int:
        """Returns when all is as if never used."""
        rule = self.rule
        if rule.algorithm in ("gcra", "token-bucket"):
            return max(now, -(-self.tat.numerator // self.tat.denominator))
        live = self._live(now)
        if not live:
            return now
        return self._window(now) + rule.period if rule.algorithm == "fixed-window" else live[-1][0] + rule.period


class Limit:
    def __init__(self, text: str) -> None:
        self.rules = [Rule(one) for one in text.split()]
        if not 1 <= len(self.rules) <= 8:
            raise Invalid("a limit has one to eight rules", "rules")
        if len({rule.by for rule in self.rules if rule.by}) > 1:
            raise Invalid("all keyed rules of a limit use one path", "rules")
        self.by = next((rule.by for rule in self.rules if rule.by), "")
        self.pauses: Dict[str, int] = {}  # by key, where the limit has some
        self.gates: Dict[Tuple[int, str], Gate] = {}

    def of(self, key: str) -> List[Gate]:
        places = [(i, key if rule.by else "") for i, rule in enumerate(self.rules)]
        return [self.gates.setdefault(place, Gate(self.rules[place[0]])) for place in places]

    def pause(self, key: str, until: int) -> None:
        self.pauses[key if self.by else ""] = until

    def paused(self, key: str) -> int:
        return self.pauses.get(key if self.by else "", 0)

    def key_of(self, job: Dict[str, Any]) -> str:
        """Returns the key of a job: the value at the path of the rules."""
        value: Any = job
        for name in self.by.split(".") if self.by else ():
            value = value.get(name) if isinstance(value, dict) else None
        if not self.by or value is None:
            return "-"
        return value if isinstance(value, str) else json.dumps(value, sort_keys=True)
