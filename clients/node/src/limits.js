/* Limits without a server, for the test mode: gcra (and token-bucket, which is the same), fixed-window and sliding-log in exact
 * microseconds, and concurrency. What it does not know it refuses: sliding-window, months, zones, offset and adapt. Times are whole microseconds. */
import { Invalid } from './errors.js';

const UNITS = { us: 1n, ms: 1000n, s: 10n ** 6n, m: 60n * 10n ** 6n, h: 3600n * 10n ** 6n, d: 86400n * 10n ** 6n, w: 7n * 86400n * 10n ** 6n };
const NAME = String.raw`\.[A-Za-z0-9_-]+`;
const BY = `,by=(?:(?:args|meta)${NAME}|id|type|cost|key|timeout|max_attempts|traceparent)(?:${NAME})*`;
const RATE = new RegExp(
  String.raw`^(\d+)/(?:(\d+)(?:\.(\d+))?)?(us|ms|s|m|h|d|w)((?:,burst=\d+|,algorithm=(?:gcra|token-bucket|fixed-window|sliding-log)|,of=[a-z][a-z0-9_]{0,31}|${BY})*)$`);
const JOBS = new RegExp(String.raw`^concurrency=(\d+)((?:${BY})*)$`);
const COUNT_MOST = 10n ** 9n;
const TEN_YEARS = 3650n * UNITS.d;

export const LATER = Number.MAX_SAFE_INTEGER; // of concurrency: when a job ends

function divideUp(n, by) {
  const quotient = n / by;
  return Number(n % by > 0n ? quotient + 1n : quotient);
}

class Rule {
  constructor(text) {
    const rate = RATE.exec(text);
    const match = rate ?? JOBS.exec(text);
    const refuse = (why) => { throw new Invalid(`rule '${text}': ${why}`, 'rules'); };
    if (!match) {
      refuse('the test mode has no months, zones, offset=, adapt= or sliding-window; write it as 100/1m,burst=5,by=key or concurrency=5');
    }
    const given = match.at(-1).split(',').slice(1).map((option) => option.split('='));
    const options = Object.fromEntries(given);
    const [, , whole, fraction = '', unit] = rate ?? [];
    const tens = 10n ** BigInt(fraction.length);
    const span = rate ? BigInt((whole ?? 1) + fraction) * UNITS[unit] : TEN_YEARS * tens;
    const [count, burst, period] = [BigInt(match[1]), BigInt(options.burst ?? match[1]), span / tens];
    this.text = text;
    this.by = options.by ?? '';
    this.of = options.of ?? 'plain';
    this.algorithm = rate ? options.algorithm ?? 'gcra' : 'concurrency';
    if (options.of === 'plain') refuse('of=plain is left out');
    if (Object.keys(options).length < given.length) refuse('an option is there twice');
    if (this.by.length > 128) refuse('the path behind by= is longer than 128 characters');
    if (count < 1n || count > COUNT_MOST || burst < 1n || burst > COUNT_MOST) refuse('the count and the burst must be 1 to 1000000000');
    if (this.algorithm === 'sliding-log' && count > 10000n) refuse('sliding-log takes a count of at most 10000');
    if (span % tens || period < 1n || period > TEN_YEARS) refuse('the period must be whole microseconds, and at most ten years');
    if (period < count) refuse('more than 1000000 a second');
    if (options.burst && /-(window|log)$/.test(this.algorithm)) refuse(`${this.algorithm} has no burst`);
    if ((burst - 1n) * period > TEN_YEARS * count) refuse('a burst that takes more than ten years');
    [this.count, this.burst, this.period] = [count, burst, period].map(Number);
  }

  /* How many slots a job of that cost takes. unsaid: where it does not say. */
  slots(cost, unsaid = 1) {
    if (this.of === 'jobs' || this.algorithm === 'concurrency') return 1;
    return (typeof cost === 'object' ? cost : { plain: cost })[this.of] ?? unsaid;
  }
}

/* The state of a rule, of one key. */
class Gate {
  #tat = 0n; // of gcra: microseconds times the count of the rule
  #log = []; // starts with their costs: of a window, or of a period
  running = 0;

  constructor(rule) {
    this.rule = rule;
    this.isBucket = rule.algorithm === 'gcra' || rule.algorithm === 'token-bucket';
  }

  #window(at) {
    return at - (at % this.rule.period);
  }

  #live(now) {
    const from = this.rule.algorithm === 'fixed-window' ? this.#window(now) : now - this.rule.period + 1;
    return this.#log.filter(({ at }) => at >= from);
  }

  /* When a start of that cost may be; null: never. */
  start(now, cost) {
    const { rule } = this;
    const slots = rule.slots(cost);
    if (slots === 0) return now;
    if (rule.algorithm === 'concurrency') return this.running < rule.count ? now : LATER;
    if (slots > rule.burst) return null;
    if (this.isBucket) return Math.max(now, divideUp(this.#tat - BigInt(rule.period) * BigInt(rule.burst - slots), BigInt(rule.count)));
    const live = this.#live(now);
    let excess = live.reduce((sum, one) => sum + one.cost, slots) - rule.count;
    if (excess <= 0) return now;
    if (rule.algorithm === 'fixed-window') return this.#window(now) + rule.period;
    return live.find((one) => (excess -= one.cost) <= 0).at + rule.period;
  }

  take(now, cost) {
    const { rule } = this;
    const slots = rule.slots(cost);
    if (slots === 0) return;
    if (rule.algorithm === 'concurrency') {
      this.running++;
    } else if (this.isBucket) {
      const at = BigInt(now) * BigInt(rule.count);
      this.#tat = (this.#tat > at ? this.#tat : at) + BigInt(rule.period) * BigInt(slots);
    } else {
      this.#log = [...this.#live(now), { at: now, cost: slots }];
    }
  }

  /* What started then has cost so much in truth. */
  settle(at, said, truth) {
    const cost = this.rule.slots(said);
    const spent = this.rule.slots(truth, cost);
    if (this.isBucket) this.#tat += BigInt(this.rule.period) * BigInt(spent - cost);
    else this.#log = this.#log.map((one) => (one.at === at && one.cost === cost ? { at, cost: spent } : one));
  }

  end() {
    if (this.rule.algorithm === 'concurrency') this.running--;
  }

  remaining(now) {
    const { rule } = this;
    if (rule.algorithm === 'concurrency') return rule.count - this.running;
    if (!this.isBucket) return Math.max(0, rule.count - this.#live(now).reduce((sum, one) => sum + one.cost, 0));
    const used = this.#tat - BigInt(now) * BigInt(rule.count);
    return used > 0n ? Math.max(0, rule.burst - divideUp(used, BigInt(rule.period))) : rule.burst;
  }

  /* When all is as if never used. */
  resets(now) {
    if (this.isBucket) return Math.max(now, divideUp(this.#tat, BigInt(this.rule.count)));
    const live = this.#live(now);
    if (live.length === 0) return now;
    return this.rule.algorithm === 'fixed-window' ? this.#window(now) + this.rule.period : live.at(-1).at + this.rule.period;
  }
}

/* A cost as places of a line have it. */
export function costWord(cost) {
  const { plain, ...named } = typeof cost === 'object' ? cost : { plain: cost };
  return [...(plain === undefined ? [] : [plain]), ...Object.keys(named).sort().map((name) => `${name}:${named[name]}`)].join(',');
}

export class Limit {
  #gates = new Map();
  #pauses = new Map(); // by key, where the limit has some

  constructor(rules) {
    this.rules = rules.trim().split(/\s+/).map((one) => new Rule(one));
    const paths = new Set(this.rules.map((rule) => rule.by).filter(Boolean));
    if (this.rules.length > 8) throw new Invalid('a limit has one to eight rules', 'rules');
    if (paths.size > 1) throw new Invalid('all keyed rules of a limit use one path', 'rules');
    this.by = [...paths][0] ?? '';
  }

  pause(key, until) {
    this.#pauses.set(this.by && key, until);
  }

  paused(key) {
    return this.#pauses.get(this.by && key) ?? 0;
  }

  of(key) {
    return this.rules.map((rule, i) => {
      const place = JSON.stringify([i, rule.by ? key : '']);
      if (!this.#gates.has(place)) this.#gates.set(place, new Gate(rule));
      return this.#gates.get(place);
    });
  }

  /* The key of a job: the value at the path of the rules. */
  keyOf(job) {
    const value = this.by && this.by.split('.').reduce((at, name) => (at !== null && typeof at === 'object' ? at[name] : undefined), job);
    if (value === '' || value === undefined || value === null) return '-';
    return typeof value === 'string' ? value : JSON.stringify(value);
  }
}
