#!/usr/bin/env python3
# An endpoint for --http that answers a job as its args say: "status", "headers" {}, "body", "times" (of the body, chunked), "last" (behind
# these), "together" (waits for so many), "sleep" before, "stall" before the body, "drop" (closes without an answer), "half" (closes in the middle of one), "raw" (says that
# and closes). It notes each request in the file requests, each connection in connections; as a proxy each one asked for in connects. Of a
# request that is signed it notes in signed whether it is so by each line of the file secrets, at a time since the server began. Its first
# line says its port.
import hmac, json, sys, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
waiting, met = [], threading.Condition()
class Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def setup(self):
        super().setup()
        open('connections', 'a').write('1\n')
    def do_POST(self):
        body = self.rfile.read(int(self.headers['Content-Length']))
        names = ['Content-Type', 'User-Agent', 'Weir-Job-Id', 'Weir-Job-Type', 'Weir-Attempt', 'Weir-Enqueued-At', 'Expect',
                 'traceparent']
        lines = [self.command + ' ' + self.path] + [n + ': ' + str(self.headers[n]) for n in names]
        open('requests', 'ab').write('\n'.join(lines).encode() + b'\n' + body + b'\n')
        if 'Weir-Signature' in self.headers:
            t, *macs = self.headers['Weir-Signature'].split(',')
            text = t[2:].encode() + b'.' + body
            mine = ['v1=' + hmac.new(s.encode(), text, 'sha256').hexdigest() for s in open('secrets').read().split()]
            line = [mine == macs, t[:2] == 't=' and began <= int(t[2:]) <= time.time(), len(macs), self.headers['Authorization'], self.headers['X-Team']]
            open('signed', 'a').write(' '.join(map(str, line)) + '\n')
        args = json.loads(body).get('args') or {}
        if 'together' in args:
            with met:
                waiting.append(1)
                met.notify_all()
                met.wait_for(lambda: len(waiting) >= args['together'])
        time.sleep(args.get('sleep', 0))
        if 'drop' in args:
            self.close_connection = True
            return
        if 'raw' in args:
            self.wfile.write(args['raw'].encode())
            self.close_connection = True
            return
        self.send_response_only(args.get('status', 200))
        for name, value in args.get('headers', {}).items():
            self.send_header(name, value)
        text = args.get('body', '').encode()
        if 'times' in args:
            self.send_header('Transfer-Encoding', 'chunked')
            self.end_headers()
            for i in range(args['times']):
                self.wfile.write(b'%x\r\n%s\r\n' % (len(text), text))
            last = args.get('last', '').encode()
            self.wfile.write(b'%x\r\n%s\r\n' % (len(last), last) if last else b'')
            self.wfile.write(b'0\r\n\r\n')
            return
        self.send_header('Content-Length', str(len(text) + ('half' in args)))
        self.end_headers()
        time.sleep(args.get('stall', 0))
        self.wfile.write(text)
        self.close_connection |= 'half' in args
    def do_CONNECT(self):
        open('connects', 'a').write('1\n')
        self.send_response_only(200)
        self.end_headers()
        self.close_connection = True
    def log_message(self, *args):
        pass
class Server(ThreadingHTTPServer):
    request_queue_size = 500
    daemon_threads = True
began = int(time.time())
server = Server(('127.0.0.1', 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
