/* What needs no server. */
import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { Handlers, Invalid, Job, Unreachable, Weir } from '../src/index.js';
import { stringify } from '../src/json.js';
import { Lost } from '../src/protocol.js';
import { seconds } from '../src/span.js';
import { fake } from '../src/testing.js';

test('JSON is written as Weir takes it', () => {
  assert.equal(stringify({ a: [1, undefined, -0, 1n << 62n], b: undefined, c: new Date(0) }), '{"a":[1,null,0,4611686018427387904],"c":"1970-01-01T00:00:00.000Z"}');
  const loop = {};
  loop.loop = loop;
  for (const wrong of [NaN, { a: Infinity }, [() => 1], 'a\ud800', loop, { a: Symbol('s') }]) assert.throws(() => stringify(wrong, 'args'), Invalid);
});

test('spans are seconds or texts', () => {
  assert.equal(seconds('1h30m'), 5400);
  assert.equal(seconds('1.5ms'), 0.0015);
  assert.equal(seconds(7), 7);
  assert.throws(() => seconds('soon', 'delay'), /delay/);
});

test('whatever a handler throws, its job has an answer', async () => {
  const handlers = new Handlers();
  handlers.handler('mail', (job) => job.args.call(job));
  const answer = (args) => {
    const job = new Job('{"id":"m1","type":"mail"}');
    job.args = args;
    return handlers.runOne(job, new AbortController().signal);
  };
  assert.deepEqual(await answer(() => { throw Object.create(null); }), { id: 'm1', status: 'retry', reason: 'its handler threw something without a text' });
  for (const cost of [3n, NaN, '3', 1.5])
    assert.match((await answer(function () { this.spent(cost); })).reason, /whole number/);
  assert.equal((await answer(function () { this.spent(3); })).cost, 3);
  assert.deepEqual((await answer(function () { this.spent({ tokens: 3 }); })).spent, { tokens: 3 });
  assert.match((await answer(function () { this.spent({ tokens: '3' }); })).reason, /whole number/);
});

test('an id that is null is made, once', async () => {
  const t = fake();
  try {
    const asked = [];
    const call = t.call.bind(t);
    t.call = async (verb, text) => {
      asked.push(text);
      const answer = await call(verb, text);
      if (asked.length === 1) throw new Lost('cut');
      return answer;
    };
    assert.ok((await new Weir().enqueue('mail', 1, { id: null })).new);
    assert.deepEqual([asked.length, asked[0] === asked[1], t.jobs('mail').length], [2, true, 1]);
    await assert.rejects(new Weir().take('openai', { wait: NaN }), (e) => e instanceof Invalid && e.member === 'wait');
    await assert.rejects(new Weir().take('openai', { wait: -1 }), (e) => e instanceof Invalid && e.member === 'wait');
    await assert.rejects(new Weir().take('openai', { cost: NaN }), (e) => e instanceof Invalid && e.member === 'cost');
  } finally {
    t.end();
  }
});

test('a signal ends whatever is waited for, with its reason', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'weir-node-'));
  const sockets = [];
  const silent = createServer((socket) => sockets.push(socket)); // it accepts, and never answers
  await new Promise((done) => silent.listen(join(folder, 's'), done));
  const never = { [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => {}), return: () => new Promise(() => {}) }) };
  const q = new Weir({ url: join(folder, 's') });
  const stop = new AbortController();
  const calls = [q.enqueue('mail', 1, { signal: stop.signal }), q.enqueueMany('mail', never, { signal: stop.signal })];
  const why = new Error('enough');
  setTimeout(() => stop.abort(why), 20);
  for (const call of calls) await assert.rejects(call, (e) => e === why);
  await q.close();
  silent.close();
  for (const socket of sockets) socket.destroy();
  rmSync(folder, { recursive: true });
});

test('without a library it is no fault of Redis', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'weir-node-'));
  cpSync(new URL('../src', import.meta.url), join(folder, 'src'), { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  const alone = await import(join(folder, 'src/index.js'));
  await assert.rejects(new alone.Weir({ url: 'unix:///nowhere' }).about(), (e) => e instanceof alone.Invalid && /npm install/.test(e.message));
  rmSync(folder, { recursive: true });
});

test('an option that nobody reads is refused', async () => {
  const q = new Weir({ url: 'unix:///nowhere' });
  await assert.rejects(q.enqueue('mail', 1, { max_attempts: 3 }), (e) => e instanceof Invalid && e.member === 'max_attempts');
  assert.throws(() => new Weir({ host: 'x' }), Invalid);
  await assert.rejects(q.enqueueMany('mail', [NaN]), (e) => e.line === 1);
  await assert.rejects(q.enqueue('mail'), Unreachable);
});

test('a signal ends waiting', async () => {
  const t = fake();
  try {
    t.rate('openai', '1/1h');
    const q = new Weir();
    await q.take('openai');
    await assert.rejects(q.take('openai', { wait: '2h', signal: AbortSignal.abort() }), { name: 'AbortError' });
    const rows = { closed: false, async *[Symbol.asyncIterator]() { try { for (;;) yield await new Promise((go) => setImmediate(go, 1)); } finally { rows.closed = true; } } };
    const abort = new AbortController();
    setTimeout(() => abort.abort(), 20);
    await assert.rejects(q.enqueueMany('mail', rows, { signal: abort.signal }), { name: 'AbortError' });
    assert.ok(rows.closed);
  } finally {
    t.end();
  }
});
