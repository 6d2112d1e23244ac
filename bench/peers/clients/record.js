// What the clients for Node.js share: jobs, and records of their starts (harness.py says what both are).
const fs = require('fs');

exports.now = () => (performance.timeOrigin + performance.now()) / 1000;

exports.job = (type, id, t) => {
  const job = { type, id, t, to: `user${id}@example.com`, body: '' };
  job.body = 'x'.repeat(Math.max(0, 120 - JSON.stringify(job).length));
  return job;
};

exports.recorder = () => {
  const file = fs.openSync(process.env.RECORD, 'a'), buffer = Buffer.alloc(1 << 20);
  let length = 0;
  const flush = () => { if (length) fs.writeSync(file, buffer, 0, length); length = 0; };
  setInterval(flush, 20);
  process.on('SIGTERM', () => { flush(); process.exit(0); });
  return (job) => {
    buffer.writeDoubleLE(exports.now(), length);
    buffer.writeDoubleLE(job.t, length + 8);
    buffer.writeDoubleLE(job.type === 'T' ? 1 : 0, length + 16);
    length += 24;
    if (length > buffer.length - 24) flush();
  };
};

// Calls send(i) at i / rate seconds.
exports.pace = async (n, rate, send) => {
  const begun = exports.now();
  for (let i = 0; i < n; i++) {
    for (let left; (left = begun + i / rate - exports.now()) > 0;) await new Promise((r) => setTimeout(r, left * 1000));
    await send(i);
  }
};

exports.run = (enqueue, pace, work) => {
  const [way, port, a, b] = process.argv.slice(2);
  const begun = exports.now();
  const said = way === 'enqueue' ? enqueue(+port, +a, b) : way === 'pace' ? pace(+port, +a, +b) : work(+port, +a, b);
  said.then(() => {
    if (way === 'work') return;
    console.log(exports.seconds ?? exports.now() - begun);
    process.exit(0);
  }).catch((e) => { console.error(e); process.exit(1); });
};
