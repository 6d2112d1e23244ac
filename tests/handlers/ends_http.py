#!/usr/bin/env python3
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
answers = {'done': (200, '', {}), 'retry': (500, 'no luck', {}), 'dead': (404, 'no such customer', {}),
           'odd': (304, '', {}), 'throttled': (429, '', {}),
           'throttled_after': (503, '', {'Retry-After': '600'}),
           'throttled_long': (429, '', {'Retry-After': '99999999999'}),
           'throttled_wrong': (429, '', {'Retry-After': '-1'})}
class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        name = self.headers['Weir-Job-Type']
        open(name + '.begun', 'w').close()
        if name == 'crash':
            return
        if name not in answers:
            time.sleep(1000)
        status, body, headers = answers[name]
        self.send_response(status)
        for header in headers.items():
            self.send_header(*header)
        self.end_headers()
        self.wfile.write(body.encode())
server = ThreadingHTTPServer(('127.0.0.1', 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
