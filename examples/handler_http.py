#!/usr/bin/env python3
"""An HTTP endpoint as a handler: examples/handler_http.py 8081, and weir worker --http sms=http://127.0.0.1:8081/sms

Each job is a POST; the status is its end: 2xx done, 429 and 503 throttled, other 4xx dead (but for 408 and 425), all else retry.
With WEIR_SECRET, it answers only a worker that signs by it: weir worker --http-secret FILE.
"""
import hashlib
import hmac
import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def send(number, text):
    """Stands for a provider: what it answers depends on the number."""
    return {"+0": 404, "+1": 429, "+2": 500}.get(number, 200)


def is_signed(secret, header, body):
    """As in doc/jobs.md: one of the signatures is ours, and not older than five minutes."""
    t, *signatures = header.split(",")
    mac = "v1=" + hmac.new(secret.encode(), t[2:].encode() + b"." + body, hashlib.sha256).hexdigest()
    ours = [hmac.compare_digest(mac.encode(), signature.encode()) for signature in signatures]
    return any(ours) and abs(time.time() - int(t[2:])) < 300


class Endpoint(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # the worker keeps its connections

    def do_POST(self):
        request, secret = self.rfile.read(int(self.headers["Content-Length"])), os.environ.get("WEIR_SECRET")
        if secret and not is_signed(secret, self.headers.get("Weir-Signature", ""), request):
            status = 425  # retry: a job is not lost to a secret that is wrong for a while
        else:
            job = json.loads(request)
            status = send(job["args"]["to"], job["args"]["text"])
        body = {404: b"no such number", 425: b"not signed by the secret", 500: b"the provider is ill"}.get(status, b"")
        self.send_response(status)
        if status == 429:
            self.send_header("Retry-After", "2")  # seconds, or a date; pauses the limits of the type
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)  # the reason, where there is one

    def log_message(self, *args):
        print(self.headers["Weir-Job-Id"], self.headers["Weir-Attempt"], *args[1:], file=sys.stderr)


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Endpoint)
    print(f"listening on port {server.server_port}", flush=True)
    server.serve_forever()
