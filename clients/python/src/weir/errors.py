"""What can go wrong, as types; and what a handler may raise to say how its job ends."""
from __future__ import annotations

from datetime import timedelta
from typing import Dict, Optional, Union

Span = Union[int, float, timedelta]  # seconds

#: What a job costs: slots of each rate, or by name: {"tokens": 900}, for rules with of=tokens; "plain" are the others.
Cost = Union[int, Dict[str, int]]


class Error(Exception):
    """Everything that this package raises."""

    #: The member of the document that is wrong, where there is one.
    member: Optional[str] = None


class Unreachable(Error, ConnectionError):
    """Redis, or weir serve, does not answer, has no room, or has no Weir in it yet. Nothing was done: trying again is safe."""


class Refused(Error, PermissionError):
    """A login, a token or a right is missing or wrong: a person has to mend it."""


class Invalid(Error, ValueError):
    """The call is wrong, and always will be."""

    def __init__(self, message: str, member: Optional[str] = None, line: Optional[int] = None) -> None:
        super().__init__(message)
        self.member = member
        #: The line of a bulk that is wrong, counted from 1, where there is one.
        self.line = line


class Missing(Error, LookupError):
    """There is no such job, limit or batch."""


class Closed(Error):
    """The state forbids it: the batch is sealed or cancelled, the job is dead or has ended."""


class Denied(Error):
    """The limit allows no slot now."""

    def __init__(self, message: str, retry_after: Optional[float]) -> None:
        super().__init__(message)
        #: Seconds until the same may be allowed. None: never, as it costs more than the limit can hold.
        self.retry_after = retry_after


class Unknown(Error):
    """The connection was lost on the way: perhaps it was done. Ask again with the same id (or batch): then it is
    done once."""

    def __init__(self, message: str, id: Optional[str] = None) -> None:
        super().__init__(message)
        #: The id of the job, or the name of the batch.
        self.id = id


class Outcome(Exception):
    """The end of a job, raised by its handler."""

    status = "retry"

    def __init__(self, reason: str = "", after: Optional[Span] = None) -> None:
        super().__init__(reason)
        self.reason, self.after = reason, after


class Retry(Outcome):
    """It failed: again after that many seconds, else after the usual backoff."""

    def __init__(self, reason: str = "", *, after: Optional[Span] = None) -> None:
        super().__init__(reason, after)


class Dead(Outcome):
    """It will never succeed: kept for a person to look at."""

    status = "dead"

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)


class Throttled(Outcome):
    """The provider said stop. The limits of the type pause so long; no attempt is used."""

    status = "throttled"

    def __init__(self, after: Optional[Span] = None, reason: str = "") -> None:
        super().__init__(reason, after)
