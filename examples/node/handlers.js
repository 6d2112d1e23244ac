/* Pays orders and mails their invoices: see README.md. */
import { pathToFileURL } from 'node:url';

import { Dead, Throttled, Weir, handler, run } from 'weir-queue';

import { charge, mail } from './providers.js';

const q = new Weir();

handler('pay', async (job, { signal }) => {
  const { id, merchant, amount } = job.args;
  const answer = await charge(merchant, amount, { idempotencyKey: id, signal });
  if (answer.status === 429) throw new Throttled(answer.retryAfter);
  if (answer.status === 402) throw new Dead('the card was declined');
  if (answer.status !== 200) throw new Error(`the provider says ${answer.status}`);
  await q.enqueue('invoice', { id, amount }, { id: `invoice-${id}` }); // once, also when this job runs again
});

handler('invoice', async (job, { signal }) => {
  await mail(`invoice of order ${job.args.id}: ${job.args.amount}`, { signal });
});

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) run();
