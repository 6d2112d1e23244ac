// bee-queue. It has no limits.
const Queue = require('bee-queue');
const { job, now, pace, recorder, run } = require('./record');
const CHUNK = 1000;

const open = async (port, more) => {
  const q = new Queue('q', { redis: { host: '127.0.0.1', port }, getEvents: false, sendEvents: false, storeJobs: false, ...more });
  await q.ready();
  return q;
};

run(async (port, n, type) => {
  const q = await open(port, { isWorker: false }), begun = now();
  for (let i = 0; i < n; i += CHUNK) {
    const jobs = [];
    for (let j = i; j < Math.min(n, i + CHUNK); j++) jobs.push(q.createJob(job(type, j, begun)));
    const failed = await q.saveAll(jobs);
    if (failed.size) throw [...failed.values()][0];
  }
  require('./record').seconds = now() - begun;
}, async (port, n, rate) => {
  const q = await open(port, { isWorker: false });
  await pace(n, rate, (i) => q.createJob(job('U', i, now())).save());
}, async (port, concurrency) => {
  const record = recorder(), q = await open(port, { removeOnSuccess: true });
  q.process(concurrency, async (j) => record(j.data));
  q.on('error', (e) => console.error(e.message));
});
