/* What the story's workers run: clients/tests/README.md. */
import { spawnSync } from 'node:child_process';
import { appendFileSync, existsSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

import { Dead, Result, Retry, Throttled, handler, run } from '../src/index.js';

const log = process.env.STAGE_LOG;

function note(job, more = {}) {
  const { id, type, args, attempt } = job;
  appendFileSync(log, `${JSON.stringify({ id, type, args, attempt, pid: process.pid, ...more })}\n`);
}

async function slow(job) {
  await sleep(job.args.seconds * 1000);
  note(job, { ended: true });
}

const ways = {
  print() {
    console.log('a stray line');
    process.stdout.write('a stray end');
    spawnSync('echo', ['from a program that it started'], { stdio: 'inherit' });
  },
  retry(job, first) {
    if (first) throw new Retry('not yet', { after: '200ms' });
  },
  kill(job, first) {
    if (first) process.kill(process.pid, 'SIGKILL');
    return first && sleep(10_000);
  },
  fail() {
    throw new Error('a plain failure');
  },
  dead() {
    throw new Dead('no such number');
  },
  throttled(job, first) {
    if (first) throw new Throttled(0.3);
  },
  spent: (job) => job.spent(3),
  result: (job) => new Result(job.args.value ?? 'x'.repeat(70_000)),
  slow,
  async 'until cancelled'(job, first, signal) {
    while (!signal.aborted) await sleep(10);
    note(job, { ended: true });
  },
};

handler('story', async (job, { signal }) => {
  const seen = `${log}.${job.id}`;
  const first = !existsSync(seen);
  writeFileSync(seen, '');
  note(job);
  return ways[job.args.do]?.(job, first, signal);
});
handler('many', (job) => note(job));
handler('report', (job) => note(job));
handler('async', (job) => {
  note(job);
  return slow(job);
});
run();
