/* Holds a client and does what each line says: clients/tests/README.md. */
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

import { Closed, Dead, Denied, Handlers, Invalid, Missing, Refused, Result, Throttled, Unknown, Unreachable, Weir, WeirError } from '../src/index.js';
import { stringify } from '../src/json.js';
import { fake } from '../src/testing.js';

const KINDS = new Map([
  [Unreachable, 'unreachable'], [Refused, 'refused'], [Invalid, 'invalid'], [Missing, 'missing'], [Closed, 'closed'], [Denied, 'denied'],
  [Unknown, 'unknown'],
]);
const NAMES = { unique_until: 'uniqueUntil', max_attempts: 'maxAttempts' };
const ran = [];

let q, mode, own;

function run(job) {
  ran.push(job.args);
  if (job.args?.do === 'dead') throw new Dead('as it was told');
  if (job.args?.do === 'throttled' && ran.filter((one) => one?.do === 'throttled').length === 1) throw new Throttled(2);
  return new Result(job.args);
}

/* A whole number beyond 2^53 comes as a BigInt. */
function parse(line) {
  return JSON.parse(line.replace(/"args": ?(\d{17,})/, '"args":"big:$1"'), (_, value) =>
    typeof value === 'string' && value.startsWith('big:') ? BigInt(value.slice(4)) : value,
  );
}

function told({ resetAfter, retryAfter, startAfter, ...take }) {
  return { ...take, reset_after: resetAfter, retry_after: retryAfter, start_after: startAfter };
}

/* A connection that is more than an address. */
async function connectionTo(to, url, way, ca) {
  const { hostname: host, port } = new URL(url);
  if (way === 'redis') {
    const { createClient, createCluster } = await import('redis');
    const redis = to === 'cluster' ? createCluster({ rootNodes: [{ url }] }) : createClient({ url, socket: { tls: true, ca, reconnectStrategy: false } });
    redis.on('error', () => {});
    await redis.connect().catch(() => {});
    return redis;
  }
  const { Redis, Cluster } = await import('ioredis');
  const node = { host, port: Number(port) };
  const redis =
    to === 'cluster' ? new Cluster([node]) : to === 'sentinel' ? new Redis({ sentinels: [node], name: 'mymaster' }) : new Redis(url, { tls: { ca } });
  redis.on('error', () => {});
  return redis;
}

const acts = {
  async connect({ url, token, way, to, ca }) {
    if (way === 'fake') mode = fake();
    if (to) {
      q = new Weir({ redis: await connectionTo(to, url, way, ca && readFileSync(ca)) });
      return;
    }
    const [, username, password, path] = /^unix:\/\/(?:([^:@/]*):([^@/]*)@)?(\/.*)$/.exec(url) ?? [];
    if (way === 'redis' && path) {
      const { createClient } = await import('redis');
      const redis = createClient({ socket: { path, reconnectStrategy: () => 50 }, username, password, disableOfflineQueue: true });
      redis.on('error', () => {});
      await Promise.race([redis.connect(), sleep(500)]); // it tries for ever
      own = redis;
      q = new Weir({ redis });
    } else {
      q = new Weir({ url, token });
    }
  },
  enqueue({ type, args, options = {} }) {
    return q.enqueue(type, args, Object.fromEntries(Object.entries(options).map(([name, value]) => [NAMES[name] ?? name, value])));
  },
  enqueue_many({ type, count, ...options }) {
    return q.enqueueMany(type, (function* () {
      for (let n = 0; n < count; n++) yield { n };
    })(), options);
  },
  job: ({ id }) => q.job(id),
  cancel: ({ id }) => q.cancel(id),
  wait: ({ id, seconds }) => q.wait(id, seconds),
  batch: ({ name }) => q.batch(name),
  seal: ({ name, ...options }) => q.seal(name, options),
  take: async ({ limit, ...options }) => told(await q.take(limit, options)),
  slot: async ({ limit, ...options }) => told(await q.slot(limit, options)),
  async hold({ limit, seconds = 0, spent, ...options }) {
    const held = await q.hold(limit, options);
    held.spent = spent;
    if (mode) mode.move(seconds);
    else await sleep(seconds * 1000);
    await held.end();
    return held.token;
  },
  rate: async ({ limit, ...options }) => told(await q.rate(limit, options)),
  about: () => q.about(),
  call: async ({ verb, text }) => JSON.parse(await q.call(verb, text)),
  set_rate: ({ name, rules }) => mode.rate(name, rules),
  keep: ({ type, seconds }) => mode.keep(type, seconds),
  move: ({ seconds }) => mode.move(seconds),
  jobs: ({ type }) => mode.jobs(type ?? undefined),
  async drain({ types }) {
    const handlers = new Handlers();
    for (const type of types) handlers.handler(type, run);
    await mode.drain(handlers);
    return [...ran];
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { do: name, ...rest } = parse(line);
  let answer;
  for (let i = 0; own && !own.isReady && i < 50; i++) await sleep(10); // it connects again by itself
  try {
    answer = { ok: (await acts[name](rest)) ?? null };
  } catch (e) {
    if (!(e instanceof WeirError)) throw e;
    answer = { kind: KINDS.get(e.constructor), message: e.message, member: e.member, line: e.line, id: e.id };
    if (e instanceof Denied) answer.retry_after = e.retryAfter;
  }
  process.stdout.write(`${stringify(answer)}\n`);
}
process.exit(0);
