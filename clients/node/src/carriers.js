/* What carries a call: a Redis connection, or HTTP to weir serve. */
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { Invalid, Refused, Unreachable } from './errors.js';
import { stringify } from './json.js';
import { Lost, abortable } from './protocol.js';

const HTTP_TIMEOUT_MS = 30_000;
const HTTP_BYTES_MOST = 2 << 20; // of any document; weir serve reads no more, and may close the connection before it says so
const REDIS_TIMEOUT_MS = 15_000;
const PARTITIONS_MOST = 64;

/* The clock of a carrier. */
class Timed {
  now() {
    return performance.now() / 1000;
  }
  sleep(s, signal) {
    return abortable(sleep(s * 1000, undefined, { signal }), signal);
  }
}

/* ---- Redis */

/* The function of Weir is not there: another version may have come. */
class FunctionMissing extends Error {}

const NOT_SENT = /ECONNREFUSED|ENOENT|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|EACCES|ClientClosed|ClientOffline|bad port/;
const REPLY = /^(ReplyError|ErrorReply|SimpleError|BlobError)$/; // of ioredis, and of redis 4 and 5

function failureOf(e) {
  const message = e.message || e.name;
  if (message.includes('unction not found')) return new FunctionMissing(message);
  if (/^(NOPERM|NOAUTH|WRONGPASS)/.test(message))
    return new Refused(`Redis refused: ${message}; weir acl producer, weir acl taker print what a user needs`);
  const replied = REPLY.test(e.name) || REPLY.test(e.constructor.name);
  return replied || NOT_SENT.test(`${e.code} ${e.constructor.name}`) ? new Unreachable(`Redis: ${message}`) : new Lost(message);
}

/* How each library sends a command as it is. A cluster of node-redis wants the key first. */
function senderOf(redis) {
  if (typeof redis.call === 'function') return (words) => redis.call(...words);
  if (typeof redis.sendCommand !== 'function') throw new TypeError('redis: neither a client of ioredis nor one of redis');
  if (typeof redis.nodeClient === 'function') return (words) => redis.sendCommand(words[0] === 'HGET' ? words[1] : words[3], false, words);
  return (words) => redis.sendCommand(words);
}

/* Connections of our own do not come back by themselves, so that they keep no process alive: the next call makes another one. */
async function connectByIoredis({ Redis }, address, at) {
  const options = { ...at, lazyConnect: true, retryStrategy: null, maxRetriesPerRequest: 0, enableOfflineQueue: false, commandTimeout: REDIS_TIMEOUT_MS };
  const redis = at ? new Redis(options) : new Redis(address, options);
  let why;
  redis.on('error', (e) => (why = e));
  try {
    await redis.connect();
  } catch (e) {
    throw why ?? e;
  }
  return redis;
}

async function connectByNodeRedis({ createClient }, address, at) {
  const { path, db: database, ...login } = at ?? {};
  const redis = createClient({ ...(at ? { database, ...login } : { url: address }), socket: { path, reconnectStrategy: false }, disableOfflineQueue: true });
  redis.on('error', () => {}); // the call says it
  await redis.connect();
  return redis;
}

async function connect(address) {
  const at = /^[./]/.test(address) ? { path: resolve(address) } : pathOf(address);
  for (const [name, by] of [['ioredis', connectByIoredis], ['redis', connectByNodeRedis]]) {
    const library = await import(name).catch(() => null);
    if (library) return by(library, address, at);
  }
  throw new Invalid('no Redis library: npm install ioredis, or redis');
}

/* unix://user:password@/path?db=1 */
function pathOf(address) {
  if (!address.startsWith('unix://')) return undefined;
  const url = new URL(address.replace(/^unix:/, 'redis:').replace(/\/\/([^/]*@)?\//, '//$1local/'));
  return {
    path: decodeURIComponent(url.pathname),
    ...(url.username && { username: decodeURIComponent(url.username) }),
    ...(url.password && { password: decodeURIComponent(url.password) }),
    ...(url.searchParams.has('db') && { db: Number(url.searchParams.get('db')) }),
  };
}

export class RedisCarrier extends Timed {
  #address;
  #redis; // the user's own, or the one that was made for the address
  #connecting;
  #words = new Map(); // those of each verb, by the prefix of their keys, as weir:{0}:about tells them
  #home;

  /** redis: the user's own connection; or an address, to which it connects at the first call. */
  constructor(redis, namespace) {
    super();
    this.#home = `${namespace}:{0}:`;
    if (typeof redis === 'string') this.#address = redis;
    else senderOf((this.#redis = redis));
  }

  async #connect() {
    if (this.#redis?.status === 'ready' || this.#redis?.isReady) return;
    this.#connecting ??= connect(this.#address).finally(() => (this.#connecting = undefined));
    try {
      this.#redis = await this.#connecting;
    } catch (e) {
      const failure = e instanceof Invalid ? e : failureOf(e);
      throw failure instanceof Lost ? new Unreachable(`Redis: ${failure.message}`) : failure;
    }
  }

  /** Ends the connection that it made. */
  async close() {
    this.#connecting?.then((redis) => redis.disconnect()).catch(() => {});
    if (this.#address && (this.#redis?.status === 'ready' || this.#redis?.isReady)) await this.#redis.disconnect();
  }

  async #command(words, signal) {
    signal?.throwIfAborted();
    if (this.#address) await abortable(this.#connect(), signal);
    try {
      const reply = await abortable(senderOf(this.#redis)(words), signal);
      return Buffer.isBuffer(reply) ? reply.toString() : reply;
    } catch (e) {
      throw signal?.aborted ? e : failureOf(e);
    }
  }

  async #read(prefix, signal) {
    const text = await this.#command(['HGET', `${prefix}about`, 'protocol'], signal);
    try {
      const about = JSON.parse(text);
      if (about.protocol === 1) return about.verbs;
    } catch {
      // as if it were not there
    }
    throw new Unreachable(`no Weir of protocol 1 in this Redis (${prefix}about); a worker of Weir brings it as it begins`);
  }

  async #ask(prefix, verb, text, signal) {
    for (let again = this.#words.has(prefix); ; again = false) {
      if (!this.#words.has(prefix)) this.#words.set(prefix, await this.#read(prefix, signal));
      const words = this.#words.get(prefix)[verb];
      if (!words) throw new Unreachable(`the Weir in this Redis does not know ${verb}`);
      try {
        return await this.#command([...words, verb, text], signal);
      } catch (e) {
        if (!(e instanceof FunctionMissing)) throw e;
        this.#words.delete(prefix);
        if (!again) throw new Unreachable(e.message);
      }
    }
  }

  /* A cursor is of the partition that gave it, so it is followed here. */
  async #follow(prefix, verb, text, signal) {
    for (let asked = text; ; ) {
      const answer = await this.#ask(prefix, verb, asked, signal);
      if (!String(answer).startsWith('{"cursor"')) return answer;
      const { cursor, ...more } = JSON.parse(answer);
      if (Object.keys(more).length > 0) return answer;
      asked = stringify({ ...JSON.parse(text), cursor });
    }
  }

  async call(verb, text, signal) {
    let prefix = this.#home;
    for (let i = 0; i < PARTITIONS_MOST; i++) {
      const answer = await this.#follow(prefix, verb, text, signal);
      if (!String(answer).slice(0, 20).includes('"elsewhere"')) return answer;
      prefix = JSON.parse(answer).elsewhere;
    }
    throw new Unreachable('it is always elsewhere: the partitions of this Redis disagree');
  }
}

/* ---- HTTP */

export class HttpCarrier extends Timed {
  #url;
  #token;

  constructor(url, token) {
    super();
    this.#url = url.replace(/\/+$/, '');
    this.#token = token;
  }

  async call(verb, text, signal) {
    if (Buffer.byteLength(text) > HTTP_BYTES_MOST) throw new Invalid(`the document has more than ${HTTP_BYTES_MOST} bytes`);
    const headers = { 'Content-Type': verb === 'bulk' ? 'application/x-ndjson' : 'application/json' };
    if (this.#token) headers.Authorization = `Bearer ${this.#token}`;
    const stop = new AbortController();
    const timer = setTimeout(() => stop.abort(new Error(`no answer within ${HTTP_TIMEOUT_MS / 1000} s`)), HTTP_TIMEOUT_MS);
    let response, body;
    try {
      response = await abortable(
        fetch(`${this.#url}/api/v1/${verb}`, { method: 'POST', headers, body: text, redirect: 'manual', signal: stop.signal }),
        signal,
      );
      body = await abortable(response.text(), signal);
    } catch (e) {
      if (signal?.aborted) throw e;
      const why = `${this.#url}: ${e.cause?.message || e.cause?.code || e.message}`;
      throw NOT_SENT.test(`${e.cause?.code} ${e.cause?.message}`) ? new Unreachable(why) : new Lost(why);
    } finally {
      clearTimeout(timer);
      if (signal?.aborted) stop.abort();
    }
    if (response.ok || body.includes('"refused"')) return body;
    const kind = response.status >= 500 ? Lost : response.status === 401 || response.status === 403 ? Refused : Unreachable;
    throw new kind(`${this.#url}: HTTP ${response.status}: ${body.slice(0, 200)}`);
  }
}

/* ---- */

/** The test mode, while there is one (weir-queue/testing): every client speaks to it. */
export const test = { fake: undefined };

export function carrierOf({ url, redis, namespace, token }) {
  const name = namespace ?? process.env.WEIR_NAMESPACE ?? 'weir';
  if (redis) return new RedisCarrier(redis, name);
  const address = url ?? process.env.REDIS_URL ?? 'redis://127.0.0.1:6379';
  return /^https?:/.test(address) ? new HttpCarrier(address, token ?? process.env.WEIR_TOKEN) : new RedisCarrier(address, name);
}
