/* The application without a server: node --test */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { fake } from 'weir-queue/testing';

import './handlers.js';
import { sent } from './providers.js';
import { order } from './server.js';

test('orders are paid once, at the rate of their merchant', async () => {
  const t = fake();
  t.rate('pay', '30/1m,burst=2,by=key');
  const post = (id, amount = 100) => order(JSON.stringify({ id, merchant: 'm7', amount }));
  assert.equal((await post('o1')).status, 201);
  assert.equal((await post('o1')).status, 200);
  assert.equal((await post('o2', -1)).status, 201);
  assert.equal((await post('o3')).status, 201);
  assert.equal((await order('{')).status, 400);
  assert.equal(await t.drain(), 3); // o1, o2, and the invoice of o1; o3 waits for its merchant
  assert.deepEqual(t.dead, { 'pay-o2': 'the card was declined' });
  t.move(2);
  assert.equal(await t.drain(), 1); // the provider says stop
  t.move(19);
  assert.equal(await t.drain(), 0);
  t.move(1);
  assert.equal(await t.drain(), 2);
  assert.deepEqual(sent, ['invoice of order o1: 100', 'invoice of order o3: 100']);
  t.end();
});
