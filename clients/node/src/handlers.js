/* Handlers, and the loop of a child of `weir worker --pipe`: a job a line in, an answer a line out. What handlers print goes to the
 * worker's log. When standard input ends, or TERM comes, the jobs that were read are finished. */
import { closeSync, openSync, writeSync } from 'node:fs';
import { Socket } from 'node:net';

import { Denied, Outcome } from './errors.js';
import { stringify } from './json.js';

const REASON_MOST = 500; // characters; more would only fill the log
const RESULT_MOST = 65536; // bytes

/** A job that a handler runs. */
export class Job {
  /** text: the line, as it came. */
  constructor(text) {
    this.text = text;
    this.document = JSON.parse(text);
    const { id, type, args, attempt, enqueued_at: enqueuedAt, key, traceparent, meta } = this.document;
    Object.assign(this, { id, type, args: args ?? null, attempt: attempt ?? 1, enqueuedAt, key, traceparent, meta });
    this.cost = undefined;
  }

  /** Tells the true cost, where it was not known before: the limits take, or give back, the difference. */
  spent(cost) {
    const numbers = typeof cost === 'object' ? Object.values(cost) : [cost];
    if (!numbers.every(Number.isSafeInteger)) throw new TypeError('spent: the cost must be a whole number, or an object of such');
    this.cost = cost;
  }
}

/** What a handler returns to leave what came of its job: any JSON of at most 64 KiB. */
export class Result {
  constructor(value) {
    this.value = value;
  }
}

/* Returns the text of a result; undefined: it is wrong, which the log says. */
function leave(job, { value }) {
  try {
    const text = stringify(value, 'result');
    const size = Buffer.byteLength(text);
    if (size <= RESULT_MOST) return text;
    throw new RangeError(`${size} bytes: at most ${RESULT_MOST} are kept`);
  } catch (e) {
    process.stderr.write(`job ${job.id}: wrong result: ${e.message}; it counts as left out\n`);
    return undefined;
  }
}

/* Anything can be thrown, also what has no text. */
function textOf(error) {
  try {
    return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  } catch {
    return 'its handler threw something without a text';
  }
}

function answerOf(job, error, returned) {
  const answer = { id: job.id, status: 'done' };
  if (error instanceof Outcome) {
    Object.assign(answer, { status: error.status, after: error.after, reason: error.message || undefined });
  } else if (error !== undefined) {
    answer.status = 'retry';
    answer.after = error instanceof Denied ? (error.retryAfter ?? undefined) : undefined;
    answer.reason = textOf(error);
  }
  if (!Number.isFinite(answer.after)) delete answer.after;
  answer.reason = answer.reason?.slice(0, REASON_MOST);
  if (job.cost !== undefined) answer[typeof job.cost === 'object' ? 'spent' : 'cost'] = job.cost;
  if (returned instanceof Result) answer.result = leave(job, returned);
  return answer;
}

/** Handlers by type. Most programs use those of the module: handler() and run(). */
export class Handlers {
  #byType = new Map();

  /** Calls fn(job, {signal}) for each job of the type; when its promise resolves the job is done. */
  handler(type, fn) {
    if (this.#byType.has(type)) throw new TypeError(`handler: ${type} has one already`);
    if (typeof fn !== 'function') throw new TypeError(`handler: ${type} has no function`);
    this.#byType.set(type, fn);
  }

  has(type) {
    return this.#byType.has(type);
  }

  /** Runs a job, and returns its answer; result: as a text. */
  async runOne(job, signal) {
    let returned;
    try {
      const fn = this.#byType.get(job.type);
      if (!fn) throw new Error(`this program has no handler for ${job.type}`);
      returned = await fn(job, { signal });
    } catch (e) {
      return answerOf(job, e ?? new Error('its handler threw nothing'));
    }
    return answerOf(job, undefined, returned);
  }

  /** Runs jobs as the child of weir worker --pipe 'TYPE=node this.js' --in-flight N, until it is told to stop. Then it ends the process. */
  async run() {
    const { input, out } = takeStreams();
    const stopping = new AbortController();
    const running = new Set();
    const begin = (line) => {
      const job = new Job(line);
      const task = this.runOne(job, stopping.signal).then(({ result, ...answer }) => {
        const line = JSON.stringify(answer);
        write(out, result === undefined ? `${line}\n` : `${line.slice(0, -1)},"result":${result}}\n`);
        running.delete(task);
      });
      running.add(task);
    };
    process.on('SIGTERM', () => {
      stopping.abort();
      input.destroy();
    });
    await readLines(input, begin);
    while (running.size > 0) await Promise.all(running);
    process.exit(0);
  }
}

/* Reads until the end, or until the stream is destroyed. */
function readLines(input, onLine) {
  let begun = [];
  input.on('data', (chunk) => {
    for (let from = 0, at; from < chunk.length; from = at + 1) {
      at = chunk.indexOf(10, from);
      begun.push(chunk.subarray(from, at < 0 ? chunk.length : at));
      if (at < 0) break;
      const line = Buffer.concat(begun).toString();
      begun = [];
      if (line.trim()) onLine(line);
    }
  });
  return new Promise((done) => input.on('close', done).on('error', done));
}

/* Standard input and output become ours alone. What handlers print, and the programs that they start, goes to standard error; such
 * programs find an empty input. A descriptor that is opened takes the lowest number that is free. */
function takeStreams() {
  const out = openSync('/proc/self/fd/1', 'w');
  const fd = openSync('/proc/self/fd/0', 'r');
  const moved = process.stderr.write.bind(process.stderr);
  process.stdout.write = moved;
  closeSync(0);
  openSync('/dev/null', 'r');
  closeSync(1);
  try {
    openSync('/proc/self/fd/2', 'a');
  } catch {
    openSync('/dev/null', 'w');
  }
  write(out, '\n'); // ends what was printed before, without a newline
  return { input: new Socket({ fd, readable: true, writable: false }), out };
}

function write(out, text) {
  const bytes = Buffer.from(text);
  for (let from = 0; from < bytes.length; ) from += writeSync(out, bytes, from);
}

/** The handlers of the module. */
export const handlers = new Handlers();

export function handler(type, fn) {
  handlers.handler(type, fn);
}

export function run() {
  return handlers.run();
}
