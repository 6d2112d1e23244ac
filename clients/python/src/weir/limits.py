"""Limits without a server, for weir.testing: gcra (and token-bucket, which is the same), fixed-window and sliding-log in
exact microseconds, and concurrency. What it does not know it refuses: sliding-window, offset and adapt."""
from __future__ import annotations

import json
import re
from fractions import Fraction
from typing import Any, Dict, List, Optional, Tuple

from .errors import Invalid

_UNITS = {"us": 1, "ms": 1000, "s": 10**6, "m": 60 * 10**6, "h": 3600 * 10**6, "d": 86400 * 10**6, "w": 7 * 86400 * 10**6}
_RATE = re.compile(r"([1-9]\d*)/(\d+(?:\.\d+)?)?(us|ms|s|m|h|d|w)")
_PATH = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")


class Rule:
    def __init__(self, text: str) -> None:
        self.text, self.by = text, ""
        self.count = self.period = 0
        self.algorithm = "gcra"
        head, *options = text.split(",")
        match = _RATE.fullmatch(head)
        if match:
            self.count, self.period = int(match[1]), int(Fraction(match[2] or 1) * _UNITS[match[3]])
        elif re.fullmatch(r"concurrency=[1-9]\d*", head):
            self.algorithm, self.count = "concurrency", int(head[12:])
        else:
            raise Invalid(f"rule '{text}': write it as 100/1m or concurrency=5", "rules")
        self.burst = self.count
        for option in options:
            self._read(option)

    def _read(self, option: str) -> None:
        name, _, value = option.partition("=")
        if name == "by" and _PATH.fullmatch(value):
            self.by = value
        elif name == "burst" and value.isdigit() and self.algorithm in ("gcra", "token-bucket") and int(value):
            self.burst = int(value)
        elif name == "algorithm" and value in ("gcra", "token-bucket", "fixed-window", "sliding-log"):
            self.algorithm = value
        else:
            raise Invalid(f"rule '{self.text}': the test mode does not know {option}", "rules")


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

    def start(self, now: int, cost: int) -> Optional[int]:
        """Returns when such a start may be. None: never; of concurrency the far future: when a job ends."""
        rule = self.rule
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

    def take(self, now: int, cost: int) -> None:
        rule = self.rule
        if rule.algorithm == "concurrency":
            self.running += 1
        elif rule.algorithm in ("gcra", "token-bucket"):
            if now > -(-self.tat.numerator // self.tat.denominator):
                self.tat = Fraction(now)
            self.tat += Fraction(rule.period, rule.count) * cost
        else:
            self.log = self._live(now) + [(now, cost)]

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
