/* Takes orders: POST /orders {"id", "merchant", "amount"}. */
import { createServer } from 'node:http';

import { Invalid, Weir, WeirError } from 'weir-queue';

const q = new Weir();

export async function order(text) {
  let document;
  try {
    document = JSON.parse(text);
  } catch {
    return { status: 400, why: 'not JSON' };
  }
  const { id, merchant, amount } = document ?? {};
  if (typeof id !== 'string' || typeof amount !== 'number') return { status: 400, why: 'an order has an id and an amount' };
  try {
    const job = await q.enqueue('pay', { id, merchant, amount }, { id: `pay-${id}`, key: merchant, maxAttempts: 10 });
    return { status: job.new ? 201 : 200, id, new: job.new };
  } catch (e) {
    if (!(e instanceof WeirError)) throw e;
    return { status: e instanceof Invalid ? 400 : 503, why: e.message };
  }
}

const server = createServer(async (request, response) => {
  let text = '';
  for await (const chunk of request) text += chunk;
  const { status, ...answer } = request.method === 'POST' && request.url === '/orders' ? await order(text) : { status: 404 };
  response.writeHead(status, { 'Content-Type': 'application/json' }).end(`${JSON.stringify(answer)}\n`);
});

if (process.env.NODE_TEST_CONTEXT === undefined) server.listen(8080, '127.0.0.1');
