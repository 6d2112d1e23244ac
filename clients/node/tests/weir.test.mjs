/* What needs no server. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Invalid, Unreachable, Weir } from '../src/index.js';
import { stringify } from '../src/json.js';
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
