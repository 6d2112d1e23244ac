"""Client of Weir, a job queue on Redis whose workers keep each job type to a rate, exactly."""
from . import aio, testing
from .client import Client
from .errors import Closed, Dead, Denied, Error, Invalid, Missing, Refused, Retry, Throttled, Unknown, Unreachable
from .handlers import Handlers, Job, Result, Task, default
from .protocol import Bulk, Enqueued, Hold, Take

__version__ = "0.1.0"

handler, task, run = default.handler, default.task, default.run

__all__ = [
    "Bulk", "Client", "Closed", "Dead", "Denied", "Enqueued", "Error", "Handlers", "Hold", "Invalid", "Job", "Missing", "Refused", "Result",
    "Retry", "Take", "Task", "Throttled", "Unknown", "Unreachable", "aio", "handler", "run", "task", "testing",
]
