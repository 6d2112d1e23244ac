#!/usr/bin/env python3
"""An HTTP endpoint as a handler: examples/handler_http.py 8081, and weir worker --http sms=http://127.0.0.1:8081/sms

Each job is a POST; the status is its end: 2xx done, 429 and 503 throttled, other 4xx dead (but for 408 and 425), all else retry.
"""
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def send(number, text):
    """Stands for a provider: what it answers depends on the number."""
    return {"+0": 404, "+1": 429, "+2": 500}.get(number, 200)


class Endpoint(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # the worker keeps its connections

    def do_POST(self):
        job = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status = send(job["args"]["to"], job["args"]["text"])
        body = {404: b"no such number", 500: b"the provider is ill"}.get(status, b"")
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
