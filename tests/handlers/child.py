# A child that stays (--pipe) and does with a job what its args say, in this order:
#   "record"     appends the line to the file lines
#   "err":TEXT   writes to standard error
#   "hold":N     no answer until N jobs are held; then to all of them, the last one first
#   "say":TEXT   writes TEXT instead of its own answer; "times":N so often
#   "close"      closes standard output
#   "fork"       starts a process that stays, its number in the file grandchild
#   "sleep":S    takes so long
#   "exit":N, "kill":N      ends, by an exit code or a signal; "once":NAME only if there is no file NAME yet
#   "answer":{}  what it answers besides the id; {"status":"done"}
import json, os, subprocess, sys, time
held = []
open('pids', 'a').write('%d\n' % os.getpid())
def write(text):
    sys.stdout.write(text)
    sys.stdout.flush()
def is_first(name):
    try:
        return name is None or os.close(os.open(name, os.O_CREAT | os.O_EXCL)) is None
    except FileExistsError:
        return False
def run(line, job, args):
    if 'record' in args:
        open('lines', 'ab').write(line)
    if 'err' in args:
        sys.stderr.write(args['err'])
        sys.stderr.flush()
    answer = {'id': job['id'], **args.get('answer', {'status': 'done'})}
    text = args.get('say', json.dumps(answer) + '\n') * args.get('times', 1)
    if 'hold' in args:
        held.insert(0, text)
        text = ''
        if len(held) == args['hold']:
            text = ''.join(held)
            held.clear()
    if 'close' in args:
        os.close(1)
        time.sleep(1000)
    if 'fork' in args:
        sleep = subprocess.Popen(['sleep', '1000'])
        open('grandchild', 'w').write('%d\n' % sleep.pid)
    if 'sleep' in args:
        open('sleeping', 'a').write('%d\n' % os.getpid())
        time.sleep(args['sleep'])
    if ('exit' in args or 'kill' in args) and is_first(args.get('once')):
        if 'kill' in args:
            os.kill(os.getpid(), args['kill'])
        os._exit(args['exit'])
    write(text)
for line in sys.stdin.buffer:
    job = json.loads(line)
    run(line, job, job.get('args') or {})
open('ended', 'a').write('%d\n' % os.getpid())
