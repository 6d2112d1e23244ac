/* Limits without a server, for the test mode: gcra (and token-bucket, which is the same), fixed-window and sliding-log in exact
 * microseconds, and concurrency. What it does not know it refuses: sliding-window, offset and adapt. Times are whole microseconds. */
import { Invalid } from './errors.js';

const UNITS = { us: 1, ms: 1e3, s: 1e6, m: 6e7, h: 3.6e9, d: 8.64e10, w: 6.048e11 };

const LATER = Number.MAX_SAFE_INTEGER; // of concurrency: when a job ends

function divideUp(n, by) {
  const quotient = n / by;
  return Number(n % by > 0n ? quotient + 1n : quotient);
}

class Rule {
  constructor(textOf) {
    const [head, ...options] = textOf.split(',');
    const rate = /^([1-9]\d*)\/(\d+(?:\.\d+)?)?(us|ms|s|m|h|d|w)$/.exec(head);
    const jobs = /^concurrency=([1-9]\d*)$/.exec(head);
    if (!rate && !jobs) throw new Invalid(`rule '${textOf}': write it as 100/1m or concurrency=5`, 'rules');
    this.text = textOf;
    this.by = '';
    this.algorithm = rate ? 'gcra' : 'concurrency';
    this.count = Number((rate ?? jobs)[1]);
    this.period = rate ? Math.floor(Number(rate[2] ?? 1) * UNITS[rate[3]]) : 0;
    this.burst = this.count;
    for (const option of options) this.#read(option);
  }

  #read(option) {
    const [, name, value] = /^([a-z]+)=(.*)$/.exec(option) ?? [];
    const isBucket = this.algorithm === 'gcra' || this.algorithm === 'token-bucket';
    if (name === 'by' && /^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$/.test(value)) this.by = value;
    else if (name === 'burst' && isBucket && /^[1-9]\d*$/.test(value)) this.burst = Number(value);
    else if (name === 'algorithm' && ['gcra', 'token-bucket', 'fixed-window', 'sliding-log'].includes(value)) this.algorithm = value;
    else throw new Invalid(`rule '${this.text}': the test mode does not know ${option}`, 'rules');
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
    if (rule.algorithm === 'concurrency') return this.running < rule.count ? now : LATER;
    if (cost > rule.burst) return null;
    if (this.isBucket) return Math.max(now, divideUp(this.#tat - BigInt(rule.period) * BigInt(rule.burst - cost), BigInt(rule.count)));
    const live = this.#live(now);
    let excess = live.reduce((sum, one) => sum + one.cost, cost) - rule.count;
    if (excess <= 0) return now;
    if (rule.algorithm === 'fixed-window') return this.#window(now) + rule.period;
    return live.find((one) => (excess -= one.cost) <= 0).at + rule.period;
  }

  take(now, cost) {
    const { rule } = this;
    if (rule.algorithm === 'concurrency') {
      this.running++;
    } else if (this.isBucket) {
      const at = BigInt(now) * BigInt(rule.count);
      this.#tat = (this.#tat > at ? this.#tat : at) + BigInt(rule.period) * BigInt(cost);
    } else {
      this.#log = [...this.#live(now), { at: now, cost }];
    }
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
