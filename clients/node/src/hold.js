/* Slots on lease: held, and renewed, until end(). */
import { hostname, uptime } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';

import { Missing, Unknown, Unreachable } from './errors.js';
import { ask, checkOptions, given, makeId, stand, takeOf } from './protocol.js';
import { seconds } from './span.js';

/* Node 18 has no Symbol.asyncDispose. */
export const DISPOSE = Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose');

class Hold {
  #carrier;
  #ttl;
  #till; // of the carrier's clock
  #awake; // the same of a clock that goes on while the machine sleeps, in whole seconds
  #over = new AbortController();
  #lost = new AbortController();
  #timer;

  constructor(carrier, token, ttl, asked) {
    this.token = token;
    this.spent = undefined;
    this.#carrier = carrier;
    this.#ttl = ttl;
    this.#lasts(asked);
    if (carrier.renewed) carrier.renewed.add(token);
    else this.#renew();
  }

  /** Ends when the slots may be another's. */
  get signal() {
    return this.#lost.signal;
  }

  get lost() {
    if (!this.#carrier.renewed && (this.#carrier.now() >= this.#till || uptime() > this.#awake)) this.#lose('it could not be renewed in time');
    return this.#lost.signal.aborted;
  }

  #lose(why) {
    this.#lost.abort(new Missing(`hold ${this.token}: lost: ${why}`));
  }

  #lasts(asked) {
    const passed = this.#carrier.now() - asked;
    this.#till = asked + this.#ttl;
    this.#awake = uptime() - passed + this.#ttl + 1;
    clearTimeout(this.#timer);
    if (!this.#carrier.renewed) this.#timer = setTimeout(() => this.#lose('it could not be renewed in time'), (this.#ttl - passed) * 1000).unref();
  }

  async #renew() {
    const { signal } = this.#over;
    for (let rest = this.#ttl / 3; !this.lost; ) {
      try {
        await sleep(rest * 1000, undefined, { ref: false, signal });
        const asked = this.#carrier.now();
        await ask(this.#carrier, 'renew', { token: this.token }, { signal });
        this.#lasts(asked);
        rest = this.#ttl / 3;
      } catch (e) {
        if (signal.aborted) return;
        if (e instanceof Missing) this.#lose('it is not held any more');
        rest = Math.min(1, this.#ttl / 10);
      }
    }
  }

  /** Gives the slots back. Missing: it was not held to the end. */
  async end() {
    if (this.#over.signal.aborted) return;
    this.#over.abort();
    clearTimeout(this.#timer);
    try {
      await ask(this.#carrier, 'end', given({ token: this.token, spent: this.spent }));
    } catch (e) {
      if (!(e instanceof Unreachable || e instanceof Unknown)) throw e; // then it ends by itself
    } finally {
      this.#carrier.renewed?.delete(this.token);
    }
  }

  [DISPOSE]() {
    return this.end();
  }
}

/** Returns what limits say, and the hold where they allow it. */
export async function hold(carrier, limit, options) {
  checkOptions(options, ['key', 'cost', 'wait', 'ttl', 'signal']);
  const { key, cost, signal } = options;
  const ttl = seconds(options.ttl, 'ttl') ?? 30;
  const document = given({ limit, key, cost, ttl, tag: makeId(), who: `${hostname()}:${process.pid}` });
  const { answer, asked } = await stand(carrier, 'hold', document, seconds(options.wait, 'wait') ?? 0, { asked: carrier.now(), signal });
  return { take: takeOf(answer), held: answer.allowed ? new Hold(carrier, answer.token, ttl, asked) : undefined };
}
