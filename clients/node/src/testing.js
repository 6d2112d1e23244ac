/* A Weir in memory, for the tests of programs: while it is there, every client of this process speaks to it instead of Redis. It takes the
 * documents of the protocol and refuses what Weir refuses. Its clock stands still until move(). A limit holds the type of its name. It has no
 * partitions, schedules, rights or workers: drain() runs jobs here and now, one after the other. */
import { createHash } from 'node:crypto';

import { test } from './carriers.js';
import * as documents from './documents.js';
import { Closed, Invalid, Missing } from './errors.js';
import { Job, handlers as ofModule } from './handlers.js';
import { stringify } from './json.js';
import { LATER, Limit, costWord } from './limits.js';
import { makeId } from './protocol.js';

const KEEP_MADE_S = 60;
const KEEP_GIVEN_S = 86400;
const NO_SUM = '0'.repeat(16);
const { check } = documents;

/* Names the member that an error is about. */
function of(member, error) {
  return Object.assign(error, { member });
}

function us(s) {
  return Math.round(s * 1e6);
}

function checkCost(job, limit) {
  for (const rule of limit?.rules ?? [])
    if (rule.slots(job.cost ?? 1) > rule.burst)
      throw new Invalid(`wrong job: its cost ${costWord(job.cost ?? 1)} never fits ${rule.text} of ${job.type}`, 'cost');
}

export class Fake {
  #now = us(Date.now() / 1000);
  #limits = new Map();
  #line = []; // jobs, in the order in which they start
  #ids = new Map(); // until when each is known
  #unique = new Map(); // key -> {id, ends, until}
  #batches = new Map();
  #streams = new Map();
  #keeps = new Map(); // type -> us
  #holds = new Map(); // token -> {since, until, ttl, cost, gates}
  renewed = new Set(); // tokens of those that a client renews as long as it holds them
  #kept = new Map(); // id -> a job that is done; due: until then

  /* ---- What tests ask */

  /** The jobs that have not ended, and those that are dead, as handlers see them. */
  jobs(type, { state } = {}) {
    return this.#line.filter((job) => (type ?? job.type) === job.type && (state ?? job.state) === job.state).map((job) => job.document);
  }

  /** The args of the jobs of a type. */
  args(type) {
    return this.jobs(type).map((job) => job.args);
  }

  /** The dead jobs, id -> reason. */
  get dead() {
    return Object.fromEntries(this.#line.filter((job) => job.state === 'dead').map((job) => [job.id, job.reason]));
  }

  /** Sets a limit, as weir rate set. */
  rate(name, ...rules) {
    this.#limits.set(name, new Limit(rules.join(' ')));
  }

  /** Keeps jobs of that type, with their results, so long behind their end, as weir worker --keep. */
  keep(type, s) {
    this.#keeps.set(type, us(s));
  }

  /** Moves the clock forward. */
  move(s) {
    this.#now += us(s);
  }

  /** Runs what may start at this time, each job by its handler, and returns how many were run. */
  async drain(handlers = ofModule) {
    for (let ran = 0; ; ran++) {
      const job = this.#line.find((one) => handlers.has(one.type) && this.#mayStart(one));
      if (!job) return ran;
      await this.#run(job, handlers);
    }
  }

  /** Ends the test mode. */
  end() {
    if (test.fake === this) test.fake = undefined;
  }

  [Symbol.dispose ?? Symbol.for('Symbol.dispose')]() {
    this.end();
  }

  /* ---- A carrier, as of Redis */

  now() {
    return this.#now / 1e6;
  }

  async sleep(s) {
    this.#now += Math.max(1, us(s)); // a rest that is too short for the clock would never end
  }

  async call(verb, text) {
    try {
      const act = this.#verbs[verb];
      if (!act) throw new Missing(`${verb}: no such verb`);
      return JSON.stringify(act(verb === 'bulk' ? text : documents.readObject(text)));
    } catch (e) {
      const refused = e instanceof Invalid ? 'invalid' : e instanceof Missing ? 'missing' : e instanceof Closed ? 'closed' : undefined;
      if (!refused) throw e;
      return JSON.stringify({ refused, member: e.member, line: e.line, why: e.message });
    }
  }

  #verbs = {
    about: (members) => {
      check(members, {});
      return { protocol: 1, verbs: Object.keys(this.#verbs).sort(), capabilities: ['costs', 'hold', 'result'], partitions: 1 };
    },
    enqueue: (members) => this.#enqueue(check(members, documents.ENQUEUE, { required: 'type', what: 'job' })),
    bulk: (text) => this.#bulk(text),
    batch: (members) => this.#batch(check(members, documents.BATCH, { required: 'batch' })),
    take: (members) => this.#ask(check(members, documents.TAKE, { required: 'limit' }), true),
    rate: (members) => this.#ask(check(members, documents.RATE, { required: 'limit' }), false),
    hold: (members) => this.#hold(check(members, documents.HOLD, { required: 'limit' })),
    renew: (members) => this.#extend(this.#held(check(members, documents.RENEW, { required: 'token' }))),
    end: (members) => this.#giveBack(this.#held(check(members, documents.END, { required: 'token' })), members.has('spent') ? documents.plain(members.get('spent')) : undefined),
    job: (members) => this.#tell(check(members, documents.ID, { required: 'id' })),
    cancel: (members) => this.#cancel(check(members, documents.ID, { required: 'id' })),
  };

  /* ---- Jobs in */

  #enqueue(document) {
    if ('in' in document && 'at' in document) throw new Invalid('wrong job: "in" or "at", not both', 'at');
    if ('unique_until' in document && !('unique' in document)) throw new Invalid('wrong job: "unique_until" without "unique"', 'unique_until');
    checkCost(document, this.#limits.get(document.type));
    const id = document.id ?? makeId();
    if ((this.#ids.get(id) ?? 0) > this.#now) return { id, new: false };
    const held = this.#unique.get(document.unique);
    if (held && held.ends > this.#now) return { id: held.id, new: false, locked: true };
    if ('batch' in document) this.#openBatch(document.batch);
    this.#ids.set(id, this.#now + us(document.remember ?? ('id' in document ? KEEP_GIVEN_S : KEEP_MADE_S)));
    const job = this.#add({ ...document, id }, document.queue ?? 'default', document.batch);
    job.due = 'at' in document ? us(document.at) : this.#now + us(document.in ?? 0);
    if (job.due > this.#now) job.state = 'scheduled';
    if ('unique' in document) {
      const until = document.unique_until ?? 'end';
      job.unique = document.unique;
      this.#unique.set(job.unique, { id, until, ends: typeof until === 'number' ? this.#now + us(until) : Infinity });
    }
    return { id, new: true };
  }

  #add(document, queue, batch) {
    const { id, type } = document;
    const body = Object.fromEntries(
      ['id', 'type', 'key', 'cost', ...Object.keys(document)].filter((name) => name in document && name in documents.JOB).map((name) => [name, document[name]]),
    );
    if (Object.keys(body.cost ?? {}).join() === 'plain') body.cost = body.cost.plain; // as the handlers of a worker get it
    const job = { document: body, id, type, queue, batch, state: 'waiting', enqueuedAt: this.#now, due: this.#now, attempts: 0, reason: '' };
    this.#line.push(job);
    if (batch) this.#batches.get(batch).total++;
    return job;
  }

  #openBatch(name) {
    if (!this.#batches.has(name))
      this.#batches.set(name, { total: 0, done: 0, dead: 0, cancelled: 0, failed: 0, lines: 0, sum: NO_SUM, created_at: this.now() });
    const batch = this.#batches.get(name);
    if ('sealed_at' in batch) throw of('batch', new Closed(`batch ${name} is sealed: it takes no more jobs; use another name`));
    return batch;
  }

  #bulk(text) {
    if (Buffer.byteLength(text) > documents.BULK_BYTES) throw new Invalid(`the text has more than ${documents.BULK_BYTES} bytes`);
    const [first, ...lines] = text.split('\n');
    const head = check(documents.readObject(first), documents.HEAD, { what: 'head' });
    if (lines.at(-1) === '') lines.pop();
    if ('batch' in head === 'stream' in head)
      throw new Invalid('wrong head: "batch" or "stream", one of them', 'stream' in head ? 'stream' : 'batch');
    if ('sum' in head && 'stream' in head) throw new Invalid('wrong head: "sum" is of a batch', 'sum');
    if (lines.length > documents.BULK_LINES) throw new Invalid(`${lines.length} lines: at most ${documents.BULK_LINES} in one text`);
    const { batch, stream, offset = 0 } = head;
    const known = batch === undefined ? { lines: this.#streams.get(stream) ?? 0, sum: NO_SUM } : (this.#batches.get(batch) ?? { lines: 0, sum: NO_SUM });
    if (known.lines !== offset || (batch !== undefined && (head.sum ?? known.sum) !== known.sum))
      return { taken: false, lines: known.lines, jobs: 0, sum: known.sum };
    const jobs = lines.map((line, i) => this.#readLine(head, line, i + 1)).filter(Boolean);
    const state = batch === undefined ? known : this.#openBatch(batch);
    state.lines += lines.length;
    if (batch === undefined) this.#streams.set(stream, state.lines);
    else for (const line of lines) state.sum = createHash('sha1').update(state.sum + line).digest('hex').slice(0, 16);
    for (const job of jobs) this.#add({ id: makeId(), ...job }, job.queue ?? head.queue ?? 'default', batch);
    return { taken: true, lines: state.lines, jobs: jobs.length, sum: state.sum };
  }

  #readLine(head, line, number) {
    if (/^[ \t\r]*$/.test(line)) return undefined;
    try {
      const job =
        'type' in head
          ? { type: head.type, args: documents.plain(documents.readJson(line, 'wrong args, not JSON')) }
          : check(documents.readObject(line), documents.LINE, { required: 'type', what: 'job' });
      checkCost(job, this.#limits.get(job.type));
      return job;
    } catch (e) {
      if (e instanceof Invalid) e.line = number;
      throw e;
    }
  }

  #batch({ batch: name, seal, then, queue }) {
    if (then !== undefined && !seal) throw new Invalid('wrong document: "then" without "seal"', 'then');
    if (queue !== undefined && then === undefined) throw new Invalid('wrong document: "queue" without "then"', 'queue');
    let batch = this.#batches.get(name);
    if (seal && !(batch && 'sealed_at' in batch)) {
      batch = this.#openBatch(name);
      Object.assign(batch, { sealed_at: this.now(), then, queue: queue ?? 'default' });
      this.#endBatch(name);
    } else if (batch && then !== undefined && (batch.then !== then || batch.queue !== (queue ?? 'default'))) {
      throw new Closed(`batch ${name} was sealed before, with another job to follow`);
    }
    if (!batch) throw new Missing(`batch ${name}: no such batch`);
    const { queue: _, ...told } = batch;
    const state = 'ended_at' in batch ? 'ended' : 'sealed_at' in batch ? 'sealed' : 'open';
    return { batch: name, state, left: batch.total - batch.done - batch.dead - batch.cancelled, ...told };
  }

  #endBatch(name) {
    const batch = this.#batches.get(name);
    const { total, done, dead, cancelled } = batch;
    if (!('sealed_at' in batch) || 'ended_at' in batch || total > done + dead + cancelled) return;
    batch.ended_at = this.now();
    if (batch.then) this.#add({ id: `${name}.then`, type: batch.then, args: { batch: name, total, done, dead, cancelled } }, batch.queue);
  }

  /* ---- One job */

  #find(id) {
    const kept = this.#kept.get(id);
    const job = kept?.due > this.#now ? kept : this.#line.find((one) => one.id === id);
    if (!job) throw new Missing(`job ${id}: no such job here: it is done, or was never enqueued`);
    return job;
  }

  #tell({ id }) {
    const { state, type, queue, attempts, enqueuedAt, due, batch, unique, reason, result } = this.#find(id);
    return {
      ...{ id, state, type, queue, attempts, batch, unique, result },
      enqueued_at: enqueuedAt / 1e6,
      reason: state === 'dead' ? reason : undefined,
      outcome: state === 'finished' ? 'done' : undefined,
      start: state === 'scheduled' || state === 'retry' ? due / 1e6 : undefined,
    };
  }

  #cancel({ id }) {
    const job = this.#find(id);
    if (job.state === 'dead' || job.state === 'finished') throw new Closed(`job ${id}: it is ${job.state} already`);
    if (job.state === 'running') return { id, cancelled: 'told' };
    this.#end(job, 'cancelled');
    return { id, cancelled: 'removed' };
  }

  /* ---- Slots */

  #hold(document) {
    this.#endLate();
    const tag = document.place?.split('.').at(-1) ?? document.tag ?? makeId();
    const token = `${document.limit}~${tag}`;
    if (this.#holds.has(token) && !document.leave) {
      this.#extend(token);
      return { allowed: true, limit: 0, remaining: 0, reset_after: 0, token };
    }
    const answer = this.#ask(document, true, tag);
    if (!answer.allowed) return answer;
    const [ttl, gates] = [us(document.ttl ?? 30), this.#limits.get(document.limit).of(document.key ?? '')];
    this.#holds.set(token, { since: this.#now, until: this.#now + ttl, ttl, cost: document.cost ?? 1, gates });
    return { ...answer, token };
  }

  #held({ token }) {
    this.#endLate();
    if (this.#holds.has(token)) return token;
    throw of('token', new Missing('it is not held any more; it has ended, or was not renewed in time'));
  }

  #extend(token) {
    const held = this.#holds.get(token);
    held.until = this.#now + held.ttl;
    return { held: true };
  }

  #giveBack(token, spent) {
    const { gates, since, cost } = this.#holds.get(token);
    this.#holds.delete(token);
    for (const gate of gates) {
      gate.end();
      if (spent !== undefined) gate.settle(since, cost, spent);
    }
    return { ended: true };
  }

  #endLate() {
    for (const [token, { until }] of this.#holds) if (until <= this.#now && !this.renewed.has(token)) this.#giveBack(token);
  }

  #ask(document, takes, tag) {
    const limit = this.#limits.get(document.limit);
    const { cost = 1, key, wait = -1, place, leave } = document;
    if (place !== undefined && !('wait' in document || leave)) throw new Invalid('wrong document: "place" without "wait" or "leave"', 'place');
    if (place !== undefined && place.split('.')[1] !== costWord(cost)) throw new Invalid('wrong document: "place" is of another cost', 'place');
    if (tag && (document.tag ?? tag) !== tag) throw new Invalid('wrong document: "tag" is not that of "place"', 'tag');
    if (leave && place === undefined) throw new Invalid('wrong document: "leave" without "place"', 'leave');
    if (!limit) throw of('limit', new Missing('there is no such limit; set it with weir rate set, or give a rule'));
    if (!tag && limit.rules.some((rule) => rule.algorithm === 'concurrency'))
      throw new Invalid('the limit counts jobs in flight, which a take cannot give back', 'limit');
    if (Boolean(limit.by) !== (key !== undefined))
      throw new Invalid(limit.by ? 'the limit is kept for each key; name one' : 'the limit has no keys', 'key');
    if (leave) return { left: true };
    const gates = limit.of(key ?? '');
    const paused = limit.paused(key);
    const starts = gates.map((gate) => gate.start(this.#now, cost));
    const start = starts.includes(null) ? null : Math.max(paused, this.#now, ...starts);
    const allowed = start === this.#now;
    if (allowed && takes) for (const gate of gates) gate.take(start, cost);
    const later = start >= LATER ? (document.wait ? 0.1 : 10) : (start - this.#now) / 1e6; // as somebody ends
    const after = allowed ? undefined : later;
    return {
      allowed,
      limit: start === null ? gates[starts.indexOf(null)].rule.burst : Math.min(...gates.map((gate) => gate.rule.burst)),
      remaining: paused > this.#now ? 0 : Math.min(...gates.map((gate) => gate.remaining(this.#now))),
      reset_after: (Math.max(paused, this.#now, ...gates.map((gate) => gate.resets(this.#now))) - this.#now) / 1e6,
      ...(start === null ? { never: true } : { retry_after: after }),
      ...(start !== null && after <= wait && { place: `${this.#now}.${costWord(cost)}.${tag ?? 'fake'}`, ask_after: Math.min(5, after) }),
    };
  }

  /* ---- Running */

  #gatesOf(job) {
    const limit = this.#limits.get(job.type);
    return limit ? limit.of(limit.keyOf(job.document)) : [];
  }

  #mayStart(job) {
    if (job.state === 'dead' || job.state === 'running' || job.due > this.#now) return false;
    const cost = job.document.cost ?? 1;
    const limit = this.#limits.get(job.type);
    this.#endLate();
    return (limit?.paused(limit.keyOf(job.document)) ?? 0) <= this.#now && this.#gatesOf(job).every((gate) => gate.start(this.#now, cost) === this.#now);
  }

  async #run(job, handlers) {
    const gates = this.#gatesOf(job);
    for (const gate of gates) gate.take(this.#now, job.document.cost ?? 1);
    if (this.#unique.get(job.unique)?.until === 'start') this.#free(job);
    job.state = 'running';
    const text = stringify({ attempt: job.attempts + 1, enqueued_at: job.enqueuedAt / 1e6, ...job.document });
    const answer = await handlers.runOne(new Job(text), new AbortController().signal);
    for (const gate of gates) gate.end();
    job.state = 'waiting';
    if (answer.status === 'done') this.#done(job, answer);
    else if (answer.status === 'throttled') this.#throttle(job, answer.after ?? 1);
    else this.#fail(job, answer);
  }

  #done(job, { result }) {
    this.#end(job, 'done');
    if (!this.#keeps.has(job.type)) return;
    const due = this.#now + this.#keeps.get(job.type);
    Object.assign(job, { state: 'finished', due, attempts: job.attempts + 1, result: result && JSON.parse(result) });
    this.#kept.set(job.id, job);
  }

  #throttle(job, after) {
    const until = this.#now + Math.max(100_000, us(after));
    const limit = this.#limits.get(job.type);
    if (limit) limit.pause(limit.keyOf(job.document), until);
    else job.due = until;
  }

  #fail(job, { status, reason = '', after }) {
    job.attempts++;
    job.reason = reason;
    if (job.batch) this.#batches.get(job.batch).failed++;
    if (status === 'dead' || job.attempts >= (job.document.max_attempts ?? 25)) {
      this.#end(job, 'dead');
      return;
    }
    job.state = 'retry';
    job.due = this.#now + us(after ?? 15 + job.attempts ** 4);
  }

  #free(job) {
    const held = this.#unique.get(job.unique);
    if (held?.id === job.id && typeof held.until === 'string') this.#unique.delete(job.unique);
  }

  #end(job, how) {
    if (how === 'dead') job.state = 'dead';
    else this.#line.splice(this.#line.indexOf(job), 1);
    if (job.unique) this.#free(job);
    if (!job.batch) return;
    this.#batches.get(job.batch)[how]++;
    this.#endBatch(job.batch);
  }
}

/** Lets every client of this process speak to a Weir in memory, until its end(). */
export function fake() {
  test.fake = new Fake();
  return test.fake;
}
