/* Protocol 1: documents are made here, and answers are read. A carrier brings them to Weir: call(verb, text, signal), now() in seconds
 * and sleep(seconds, signal). doc/protocol.md of Weir says what the documents mean. */
import { createHash, randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';

import { Closed, Invalid, Missing, Refused, Unknown, Unreachable, WeirError } from './errors.js';
import { documentText, stringify } from './json.js';
import { seconds } from './span.js';

const GIVE_UP_S = 15; // a lost call is asked again for that long, well within the minute for which made ids are remembered
const TEXT_LINES = 1000;
const TEXT_BYTES = 128 * 1024; // of one text of a bulk
const DENIALS_MOST = 1000;
const DENIAL_LONGEST_S = 1; // so that a rule that was changed shows within a second
const NO_SUM = '0'.repeat(16);
const DIGITS = 'abcdefghijklmnopqrstuvwxyz0123456789';

/** A carrier throws it when nobody knows whether the call was done. */
export class Lost extends Error {}

/** Ends waiting when the signal comes; what was sent may be done all the same. */
export function abortable(promise, signal) {
  if (!signal) return promise;
  return new Promise((done, failed) => {
    const abort = () => failed(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    promise.then(done, failed).finally(() => signal.removeEventListener('abort', abort));
  });
}

/* Waits for what a call leaves behind, but a second at most; how it ends matters to nobody. */
async function briefly(promise) {
  const over = new AbortController();
  await Promise.race([promise, sleep(1000, undefined, { signal: over.signal })]).catch(() => {});
  over.abort();
}

export function makeId() {
  return Array.from({ length: 16 }, () => DIGITS[randomInt(DIGITS.length)]).join('');
}

/** Refuses options that nobody would read. */
export function checkOptions(options, known) {
  for (const name of Object.keys(options))
    if (!known.includes(name)) throw new Invalid(`no such option: ${name}; there are ${known.join(', ')}`, name);
}

export function given(document) {
  return Object.fromEntries(Object.entries(document).filter(([, value]) => value !== undefined && value !== null));
}

/* ---- Answers */

const KINDS = { missing: Missing, closed: Closed, rights: Refused, unavailable: Unreachable };

function readAnswer(text) {
  let answer;
  try {
    answer = JSON.parse(text);
  } catch {
    answer = null;
  }
  if (answer === null || typeof answer !== 'object' || Array.isArray(answer))
    throw new Unreachable(`the answer is not of Weir's protocol: ${String(text).slice(0, 80)}`);
  if (answer.refused === undefined) return answer;
  const why = answer.why ?? answer.refused;
  if (answer.refused === 'invalid') throw new Invalid(why, answer.member, answer.line);
  throw new (KINDS[answer.refused] ?? WeirError)(why);
}

/** Asks, and asks again when the answer was lost. name: what to ask again with, for the error. */
async function askText(carrier, verb, text, name, signal) {
  const begin = carrier.now();
  let pause = 0.05;
  let lost;
  for (;;) {
    signal?.throwIfAborted();
    try {
      return readAnswer(await carrier.call(verb, text, signal));
    } catch (e) {
      if (lost && verb === 'end' && e instanceof Missing) return { ended: true }; // by the call whose answer was lost
      if (!(e instanceof Lost || (lost && e instanceof Unreachable))) throw e;
      lost = e instanceof Lost ? e : lost;
    }
    if (carrier.now() - begin > GIVE_UP_S)
      throw new Unknown(`outcome unknown: ${lost.message}; ask again with ${name ?? 'the same'}, it happens once`, name);
    await carrier.sleep(pause, signal);
    pause = Math.min(1, pause * 2);
  }
}

export function ask(carrier, verb, document, { name, signal } = {}) {
  return askText(carrier, verb, documentText(document), name, signal);
}

/* ---- enqueue */

const JOB_OPTIONS = [
  'id', 'queue', 'key', 'cost', 'delay', 'at', 'unique', 'uniqueUntil', 'batch', 'remember', 'timeout', 'maxAttempts', 'traceparent',
  'meta', 'signal',
];

function timeOf(at) {
  return at instanceof Date ? at.getTime() / 1000 : at;
}

function uniqueUntilOf(until) {
  return until === 'end' || until === 'start' ? until : seconds(until, 'uniqueUntil');
}

export async function enqueue(carrier, type, args, options) {
  checkOptions(options, JOB_OPTIONS);
  const made = options.id === undefined || options.id === null;
  const document = given({
    remember: seconds(options.remember, 'remember') ?? (made ? 60 : undefined),
    queue: options.queue,
    in: seconds(options.delay, 'delay'),
    at: timeOf(options.at),
    unique: options.unique,
    unique_until: uniqueUntilOf(options.uniqueUntil),
    batch: options.batch,
    id: made ? makeId() : options.id,
    type,
    key: options.key,
    cost: options.cost,
    args,
    max_attempts: options.maxAttempts,
    timeout: seconds(options.timeout, 'timeout'),
    traceparent: options.traceparent,
    meta: options.meta,
  });
  const answer = await ask(carrier, 'enqueue', document, { name: document.id, signal: options.signal });
  const locked = answer.locked ?? false;
  // Nobody else knows an id that was made here: where it is there already, the answer was lost.
  return { id: answer.id, new: answer.new || (made && !locked), locked };
}

/* ---- bulk */

function addLine(sum, line) {
  return createHash('sha1').update(sum + line).digest('hex').slice(0, 16);
}

/* Rows as lines. */
class Input {
  constructor(rows, signal) {
    this.signal = signal;
    this.rows = rows[Symbol.asyncIterator]?.() ?? rows[Symbol.iterator]?.();
    if (!this.rows) throw new TypeError('enqueueMany: rows must be an iterable, or an asynchronous one');
    this.number = 0;
    this.kept = null;
  }

  /* null: there are no more. */
  async line() {
    const { kept } = this;
    this.kept = null;
    if (kept !== null) return kept;
    const { done, value } = await abortable(Promise.resolve(this.rows.next()), this.signal);
    if (done) return null;
    this.number++;
    try {
      return stringify(value === undefined ? null : value, 'args');
    } catch (e) {
      throw e instanceof Invalid ? new Invalid(`line ${this.number}: ${e.message}`, e.member, this.number) : e;
    }
  }

  async some() {
    const lines = [];
    let size = 0;
    for (let line; lines.length < TEXT_LINES && (line = await this.line()) !== null; ) {
      size += Buffer.byteLength(line) + 1;
      if (lines.length && size > TEXT_BYTES) {
        this.kept = line;
        break;
      }
      lines.push(line);
    }
    return lines;
  }

  async end() {
    const ended = this.rows.return?.();
    await (this.signal?.aborted ? briefly(ended) : ended);
  }
}

function changed(batch) {
  return new Invalid(`batch ${batch}: the input is another one than that of which a part was sent; nothing more is sent`, 'batch');
}

/* Passes over what an earlier run has sent. Returns how many lines, and their sum. */
async function resume(carrier, input, batch, signal) {
  let known;
  try {
    known = await ask(carrier, 'batch', { batch }, { name: batch, signal });
  } catch (e) {
    if (e instanceof Missing) return { at: 0, sum: NO_SUM };
    throw e;
  }
  let sum = NO_SUM;
  for (let at = 0; at < known.lines; at++) {
    const line = await input.line();
    if (line === null) throw changed(batch);
    sum = addLine(sum, line);
  }
  if (known.lines > 0 && sum !== known.sum) throw changed(batch);
  return { at: known.lines, sum };
}

async function sendText(carrier, head, lines, signal) {
  const name = head.batch ?? head.stream;
  let answer;
  try {
    answer = await askText(carrier, 'bulk', [documentText(head), ...lines].join('\n'), name, signal);
  } catch (e) {
    const line = e instanceof Invalid && e.line ? head.offset + e.line : undefined;
    throw line ? new Invalid(`line ${line}: ${e.message}`, e.member, line) : e;
  }
  if (answer.taken) return answer;
  const sum = head.batch && lines.reduce(addLine, head.sum);
  if (answer.lines !== head.offset + lines.length || (head.batch && answer.sum !== sum))
    throw new Closed(`${name}: it has ${answer.lines} lines, not ${head.offset}: somebody else sends it, or it was forgotten`);
  return { ...answer, jobs: lines.filter((line) => line.trim()).length };
}

export async function enqueueMany(carrier, type, rows, options) {
  checkOptions(options, ['batch', 'then', 'queue', 'signal']);
  const { batch, then, queue, signal } = options;
  if (then && !batch) throw new Invalid('wrong bulk: "then" wants a batch', 'then');
  const input = new Input(rows, signal);
  try {
    const name = batch === undefined ? { stream: `stream.${makeId()}` } : { batch };
    let { at, sum } = batch === undefined ? { at: 0, sum: NO_SUM } : await resume(carrier, input, batch, signal);
    const resumed = at;
    let jobs = 0;
    for (let lines; (lines = await input.some()).length > 0; ) {
      const head = given({ ...name, type, queue, offset: at, sum: batch === undefined ? undefined : sum });
      const answer = await sendText(carrier, head, lines, signal);
      ({ lines: at, sum } = answer);
      jobs += answer.jobs;
    }
    if (batch !== undefined) await seal(carrier, batch, { then, queue: then && queue, signal });
    return { lines: at, jobs, resumed };
  } finally {
    await input.end();
  }
}

export function seal(carrier, batch, options) {
  checkOptions(options, ['then', 'queue', 'signal']);
  const { then, queue, signal } = options;
  return ask(carrier, 'batch', given({ batch, seal: true, then, queue }), { name: batch, signal });
}

/* ---- job, cancel */

/** Asks page by page. A job that moves meanwhile may be passed over, so it is looked for twice. */
export async function pages(carrier, verb, id, options) {
  checkOptions(options, ['signal']);
  for (let round = 1; ; round++) {
    try {
      for (let document = { id }; ; ) {
        const answer = await ask(carrier, verb, document, options);
        if (answer.cursor === undefined || answer.state !== undefined || answer.cancelled !== undefined) return answer;
        document = { id, cursor: answer.cursor };
      }
    } catch (e) {
      if (!(e instanceof Missing) || round === 2) throw e;
    }
  }
}

/** Looks less and less often, and rests twenty times as long as a look takes. */
export async function wait(carrier, id, timeout, options) {
  const until = carrier.now() + seconds(timeout, 'timeout');
  for (let rest = 0.02; ; rest = Math.min(1, rest * 1.5)) {
    const asked = carrier.now();
    const answer = await pages(carrier, 'job', id, options);
    const now = carrier.now();
    if (answer.state === 'finished' || answer.state === 'dead' || !(now < until)) return answer;
    await carrier.sleep(Math.min(until - now, Math.max(rest, 20 * (now - asked))), options.signal);
  }
}

/* ---- take */

/** Answers again what was denied, until that can change. */
export class Denials {
  #kept = new Map();

  find(question, now) {
    const { asked, until, answer } = this.#kept.get(question) ?? { until: -1 };
    if (until <= now) return undefined;
    const passed = now - asked;
    const older = { ...answer, reset_after: Math.max(0, answer.reset_after - passed) };
    if (answer.retry_after !== undefined) older.retry_after = answer.retry_after - passed;
    return older;
  }

  keep(question, asked, answer) {
    this.#kept.delete(question);
    if (this.#kept.size >= DENIALS_MOST) this.#kept.delete(this.#kept.keys().next().value);
    this.#kept.set(question, { asked, until: asked + Math.min(DENIAL_LONGEST_S, answer.retry_after ?? DENIAL_LONGEST_S), answer });
  }
}

export function takeOf(answer) {
  return {
    allowed: answer.allowed,
    limit: answer.limit,
    remaining: answer.remaining,
    resetAfter: answer.reset_after,
    retryAfter: answer.retry_after ?? null,
    startAfter: answer.start_after ?? 0,
  };
}

/* Stands in line until the slot comes or is denied. */
export async function stand(carrier, verb, document, wait, { asked, signal }) {
  const begin = asked;
  try {
    for (;;) {
      const { place } = document;
      const answer = await ask(carrier, verb, wait === 0 ? document : { ...document, wait: place === undefined ? wait : Math.max(0, wait - (asked - begin)) }, { signal });
      if (answer.allowed && answer.start_after) await carrier.sleep(answer.start_after, signal);
      if (answer.place === undefined) return { answer, asked };
      document = { ...document, place: answer.place };
      await carrier.sleep(answer.ask_after, signal);
      asked = carrier.now();
    }
  } catch (e) {
    // What cannot be sent comes by itself: a hold has an end, and a place is lost ten seconds behind its slot.
    if (verb === 'hold') await briefly(carrier.call('end', documentText({ token: `${document.limit}~${document.tag}` })));
    if (document.place !== undefined) await briefly(carrier.call(verb, documentText({ ...document, leave: true })));
    throw e;
  }
}

export async function take(carrier, denials, limit, options) {
  checkOptions(options, ['key', 'cost', 'wait', 'fresh', 'signal']);
  const { key, cost, fresh, signal } = options;
  const wait = seconds(options.wait, 'wait') ?? 0;
  const asked = carrier.now();
  const document = given({ limit, key, cost });
  const question = documentText(document);
  const known = fresh ? undefined : denials.find(question, asked);
  if (known && (known.retry_after ?? Infinity) > wait) return takeOf(known);
  const came = await stand(carrier, 'take', document, wait, { asked, signal });
  if (!came.answer.allowed) denials.keep(question, came.asked, came.answer);
  return takeOf(came.answer);
}

export async function rate(carrier, limit, options) {
  checkOptions(options, ['key', 'cost', 'signal']);
  const { key, cost, signal } = options;
  return takeOf(await ask(carrier, 'rate', given({ limit, key, cost }), { signal }));
}
