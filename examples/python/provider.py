"""Stands for what you call: a provider of mail, and a language model."""


class TooMany(Exception):
    """HTTP 429, with its Retry-After."""

    def __init__(self, retry_after):
        super().__init__(f"too many; again in {retry_after} s")
        self.retry_after = retry_after


class NoSuchAddress(Exception):
    pass


class Provider:
    def __init__(self):
        self.sent = []

    def send(self, to, text):
        if to == "owner13@example.com":
            raise NoSuchAddress(to)
        if len(self.sent) == 100:
            self.sent.append("a pause")
            raise TooMany(retry_after=30)
        self.sent.append(to)


def write_text(business):
    return f"Business {business} had a good week."
