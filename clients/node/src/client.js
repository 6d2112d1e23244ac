import { carrierOf, test } from './carriers.js';
import { Denied, Invalid } from './errors.js';
import { DISPOSE, hold } from './hold.js';
import { Denials, ask, enqueue, enqueueMany, pages, rate, seal, take, wait } from './protocol.js';

function denied(limit, take) {
  return new Denied(
    take.retryAfter === null ? `${limit}: this costs more than the limit can hold` : `${limit}: denied; again in ${take.retryAfter.toFixed(3)} s`,
    take.retryAfter,
  );
}

/** Speaks to one Redis and one namespace, or to weir serve. It connects at the first call. */
export class Weir {
  #own;
  #denials = new Denials();

  constructor(options = {}) {
    for (const name of Object.keys(options))
      if (!['url', 'redis', 'namespace', 'token'].includes(name)) throw new Invalid(`no such option: ${name}`, name);
    this.#own = carrierOf(options);
  }

  get #carrier() {
    return test.fake ?? this.#own;
  }

  enqueue(type, args, options = {}) {
    return enqueue(this.#carrier, type, args, options);
  }

  enqueueMany(type, rows, options = {}) {
    return enqueueMany(this.#carrier, type, rows, options);
  }

  job(id, options = {}) {
    return pages(this.#carrier, 'job', id, options);
  }

  wait(id, timeout, options = {}) {
    return wait(this.#carrier, id, timeout, options);
  }

  async cancel(id, options = {}) {
    return (await pages(this.#carrier, 'cancel', id, options)).cancelled;
  }

  batch(name, { signal } = {}) {
    return ask(this.#carrier, 'batch', { batch: name }, { signal });
  }

  seal(name, options = {}) {
    return seal(this.#carrier, name, options);
  }

  take(limit, options = {}) {
    return take(this.#carrier, this.#denials, limit, options);
  }

  async slot(limit, options = {}) {
    const slot = await this.take(limit, options);
    if (slot.allowed) return Object.assign(slot, { async [DISPOSE]() {} });
    throw denied(limit, slot);
  }

  async hold(limit, options = {}) {
    const { take: asked, held } = await hold(this.#carrier, limit, options);
    if (held) return held;
    throw denied(limit, asked);
  }

  rate(limit, options = {}) {
    return rate(this.#carrier, limit, options);
  }

  about({ signal } = {}) {
    return ask(this.#carrier, 'about', {}, { signal });
  }

  /** Carries a document as it is, and returns the answer as it came. */
  call(verb, text, { signal } = {}) {
    return this.#carrier.call(verb, text, signal);
  }

  /** Ends the connection that it made; one that was given stays. */
  async close() {
    await this.#own.close?.();
  }

  [DISPOSE]() {
    return this.close();
  }
}
