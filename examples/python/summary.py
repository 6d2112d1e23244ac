"""Weekly summaries: see README.md."""
from datetime import date

import weir
from provider import NoSuchAddress, Provider, TooMany, write_text

q = weir.Client()
provider = Provider()


def businesses():
    """One row a business, as a database would stream them."""
    yield from ({"business": n, "to": f"owner{n}@example.com"} for n in range(1, 201))


@weir.handler("fanout")
def fanout(job):
    week = date.fromtimestamp(job.enqueued_at).strftime("%G-W%V")
    sent = q.enqueue_many("summary", businesses(), batch="summary-" + week, then="report")
    print(f"{sent.jobs} summaries enqueued, {sent.resumed} before")


@weir.task(max_attempts=8)
def summary(business, to):
    with q.slot("model", wait=60):
        text = write_text(business)
    try:
        provider.send(to, text)
    except TooMany as e:
        raise weir.Throttled(e.retry_after)
    except NoSuchAddress:
        raise weir.Dead("no such address")


@weir.task
def report(batch, total, done, dead, cancelled):
    print(f"{batch}: {done} of {total} sent, {dead} dead")


if __name__ == "__main__":
    weir.run()
