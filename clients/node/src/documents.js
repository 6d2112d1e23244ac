/* The checks of protocol 1 for the test mode: what Weir refuses is refused with the same members. */
import { Invalid } from './errors.js';
import { stringify } from './json.js';

const TEN_YEARS_S = 315532800;
const YEAR_2100_S = 4102444800;
const JOB_BYTES = 1 << 20;
export const BULK_BYTES = 2 << 20;
export const BULK_LINES = 1000;
const DEPTH = 511;

/* ---- Reading JSON */

const TOKEN = /[ \t\n\r]*(?:([{}[\],:])|("(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")|(-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)|(true|false|null))/y;

/* Reads one value. A number knows its digits: {number, digits}; an object is a Map of members, in their order. */
class Reader {
  constructor(text) {
    this.text = text;
    this.at = 0;
  }

  token() {
    TOKEN.lastIndex = this.at;
    const found = TOKEN.exec(this.text);
    if (!found) throw new SyntaxError('no value begins');
    this.at = TOKEN.lastIndex;
    return found;
  }

  value(depth, [, mark, text, digits, word] = this.token()) {
    if (text !== undefined) return textOf(text);
    if (digits !== undefined) return numberOf(digits);
    if (word !== undefined) return JSON.parse(word);
    if (mark !== '{' && mark !== '[') throw new SyntaxError('no value begins');
    if (depth === 0) throw new SyntaxError('nested too deep');
    return mark === '{' ? this.object(depth - 1) : this.array(depth - 1);
  }

  array(depth) {
    const list = [];
    for (let token = this.token(); token[1] !== ']' || list.length > 0; token = this.token()) {
      list.push(this.value(depth, token));
      const end = this.token()[1];
      if (end === ']') break;
      if (end !== ',') throw new SyntaxError('no comma between values');
    }
    return list;
  }

  object(depth) {
    const members = new Map();
    for (let token = this.token(); token[1] !== '}' || members.size > 0; token = this.token()) {
      if (token[2] === undefined) throw new SyntaxError('no name of a member begins');
      const name = textOf(token[2]);
      if (this.token()[1] !== ':') throw new SyntaxError('no colon behind a name');
      if (members.has(name)) members.twice ??= name;
      members.set(name, this.value(depth));
      const end = this.token()[1];
      if (end === '}') break;
      if (end !== ',') throw new SyntaxError('no comma between members');
    }
    return members;
  }
}

function textOf(token) {
  const text = JSON.parse(token);
  if (text.includes('\0')) throw new SyntaxError('\\u0000 is not supported');
  if (/\p{Surrogate}/u.test(text)) throw new SyntaxError('half a surrogate pair');
  return text;
}

function numberOf(digits) {
  const whole = /^-?\d+$/.test(digits);
  if (whole && (digits.length > 20 || BigInt.asIntN(64, BigInt(digits)) !== BigInt(digits)))
    throw new SyntaxError('an integer that does not fit 64 bits');
  if (!Number.isFinite(Number(digits))) throw new SyntaxError('a number too large for a double');
  return { number: Number(digits), digits, whole };
}

/** Reads JSON as Weir does. what: the beginning of the refusal. */
export function readJson(text, what, depth = DEPTH) {
  try {
    const reader = new Reader(text);
    const value = reader.value(depth);
    if (/[^ \t\n\r]/.test(text.slice(reader.at))) throw new SyntaxError('something stands behind its end');
    return value;
  } catch (e) {
    if (e instanceof SyntaxError || e instanceof RangeError) throw new Invalid(`${what}: ${e.message}`);
    throw e;
  }
}

/** Returns a Map of members. */
export function readObject(text) {
  if (Buffer.byteLength(text) > JOB_BYTES) throw new Invalid(`the document has more than ${JOB_BYTES} bytes`);
  const members = readJson(text, 'not JSON', DEPTH + 1);
  if (!(members instanceof Map)) throw new Invalid('not a JSON object');
  if (members.twice !== undefined) throw new Invalid('not JSON: a member comes twice', members.twice);
  return members;
}

/** Returns what was read as JavaScript has it; whole numbers beyond 2^53 as BigInt. */
export function plain(value) {
  if (value instanceof Map) return Object.fromEntries(Array.from(value, ([name, one]) => [name, plain(one)]));
  if (Array.isArray(value)) return value.map(plain);
  if (value?.digits === undefined) return value;
  return value.whole && !Number.isSafeInteger(value.number) ? BigInt(value.digits) : value.number;
}

/* ---- Members: a check, and what it must be */

const text = (fits, mustBe) => [(v) => typeof v === 'string' && fits(v), mustBe];
const whole = (low, high) => [(v) => v?.whole === true && v.number >= low && v.number <= high, `a whole number from ${low} to ${high}`];
const number = (fits, mustBe) => [(v) => v?.digits !== undefined && fits(v.number), mustBe];

const NAME = text((v) => /^[A-Za-z0-9_.-]{1,128}$/.test(v), 'a name: 1 to 128 of A-Z a-z 0-9 _ . -');
const ANY = [() => true, 'any value'];
const TRUE = [(v) => v === true, 'true'];
const cost = (least) => {
  const [fits, mustBe] = whole(least, 1e9);
  const [isPart] = whole(0, 1e9);
  const isOne = ([name, n]) => (name === 'plain' ? fits(n) : /^(?!jobs$)[a-z][a-z0-9_]{0,31}$/.test(name) && isPart(n));
  const areAll = (v) => v.twice === undefined && v.size > 0 && v.size - v.has('plain') <= 8 && [...v].every(isOne);
  return [(v) => (v instanceof Map ? areAll(v) : fits(v)), `${mustBe}, or by up to 8 names, {"tokens": 900}`];
};
const COST = cost(1);
const TRACE = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

export const JOB = {
  type: NAME,
  id: NAME,
  args: ANY,
  key: NAME,
  cost: COST,
  max_attempts: whole(1, 1e6),
  timeout: number((v) => v > 0 && v <= TEN_YEARS_S, 'a number of seconds above 0, at most ten years'),
  traceparent: text((v) => TRACE.test(v), 'VERSION-TRACE-SPAN-FLAGS in lower-case hex'),
  meta: ANY,
};
export const ENQUEUE = {
  ...JOB,
  queue: NAME,
  in: number((v) => v >= 0 && v < YEAR_2100_S, 'a number of seconds, before the year 2100'),
  at: number((v) => v >= 0 && v < YEAR_2100_S, 'seconds since 1970, before the year 2100'),
  unique: NAME,
  unique_until: [
    (v) => v === 'end' || v === 'start' || (v?.digits !== undefined && v.number >= 0.001 && v.number <= TEN_YEARS_S),
    '"end", "start", or seconds from 0.001 to ten years',
  ],
  batch: NAME,
  remember: whole(1, 2592000),
};
export const LINE = { ...JOB, queue: NAME };
export const HEAD = {
  batch: NAME,
  stream: NAME,
  offset: whole(0, Number.MAX_SAFE_INTEGER),
  type: NAME,
  queue: NAME,
  sum: text((v) => /^[0-9a-f]{16}$/.test(v), '16 hexadecimal digits'),
};
export const BATCH = { batch: NAME, seal: TRUE, then: NAME, queue: NAME };
export const RATE = {
  limit: NAME,
  key: text((v) => v !== '' && Buffer.byteLength(v) <= 1024, 'a string of 1 to 1024 bytes'),
  cost: COST,
};
export const TAKE = {
  ...RATE,
  wait: number((v) => v >= 0 && v <= 86400, 'a number of seconds from 0 to 86400'),
  place: text((v) => /^[0-9]+\.[a-z0-9_:,]+\.[A-Za-z0-9]+$/.test(v), 'as it was answered'),
  leave: TRUE,
};
export const HOLD = {
  ...TAKE,
  ttl: number((v) => v >= 0.1 && v <= 86400, 'a number of seconds from 0.1 to 86400'),
  tag: text((v) => /^[A-Za-z0-9]{1,40}$/.test(v), 'a string of 1 to 40 letters and digits'),
  who: text((v) => Buffer.byteLength(v) <= 200 && !/[\0-\x1f\x7f]/.test(v), 'a line of at most 200 bytes'),
};
export const RENEW = { token: text((v) => /^[A-Za-z0-9_.-]{1,128}~[A-Za-z0-9]+$/.test(v), 'as it was answered') };
export const END = { ...RENEW, spent: cost(0) };
export const ID = { id: NAME, cursor: [() => false, 'as it was answered'] }; // here there is none

/** Returns the document as JavaScript has it, or throws what is wrong with it. */
export function check(members, known, { required, what = 'document' } = {}) {
  for (const [name, value] of members) {
    if (!Object.hasOwn(known, name)) {
      const hint = what === 'job' ? '; what the handler needs goes into "args" or "meta"' : '';
      throw new Invalid(`wrong ${what}: "${name.slice(0, 60)}" is no member of it${hint}`, name);
    }
    const [fits, mustBe] = known[name];
    if (!fits(value))
      throw new Invalid(`wrong ${what}: "${name}" must be ${mustBe}, not ${(value?.digits ?? stringify(plain(value))).slice(0, 60)}`, name);
  }
  if (required && !members.has(required)) throw new Invalid(`wrong ${what}: "${required}" is missing`, required);
  return plain(members);
}
