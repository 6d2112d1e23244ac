// BullMQ. RATE "100/10": its limiter, at most 10 jobs in 100 ms, over all workers.
const { Queue, Worker } = require('bullmq');
const { job, now, pace, recorder, run } = require('./record');
const CHUNK = 1000, IN_FLIGHT = 4;

const connection = (port) => ({ host: '127.0.0.1', port, maxRetriesPerRequest: null });
const open = async (port) => { const q = new Queue('q', { connection: connection(port) }); await q.waitUntilReady(); return q; };

run(async (port, n, type) => {
  const q = await open(port), begun = now(), sent = [];
  for (let i = 0; i < n; i += CHUNK) {
    const jobs = [];
    for (let j = i; j < Math.min(n, i + CHUNK); j++) jobs.push({ name: type, data: job(type, j, begun), opts: {} });
    sent.push(q.addBulk(jobs));
    if (sent.length >= IN_FLIGHT) await sent.shift();
  }
  await Promise.all(sent);
  require('./record').seconds = now() - begun;
}, async (port, n, rate) => {
  const q = await open(port);
  await pace(n, rate, (i) => q.add('U', job('U', i, now())));
}, async (port, concurrency, rate) => {
  const options = { connection: connection(port), concurrency, removeOnComplete: { count: 0 } };
  if (rate !== '-') {
    const [duration, max] = rate.split('/').map(Number);
    options.limiter = { max, duration };
  }
  const record = recorder();
  new Worker('q', async (j) => record(j.data), options).on('error', (e) => console.error(e.message));
});
