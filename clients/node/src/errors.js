/* What can go wrong, as types; and what a handler throws to say how its job ends. */
import { seconds } from './span.js';

/** Everything that this package throws, but for what an AbortSignal gives. */
export class WeirError extends Error {
  get name() {
    return this.constructor.name;
  }
}

/** Redis, or weir serve, does not answer, has no room, or has no Weir in it yet. Nothing was done: trying again is safe. */
export class Unreachable extends WeirError {}

/** A login, a token or a right is missing or wrong: a person has to mend it. */
export class Refused extends WeirError {}

/** The call is wrong, and always will be. */
export class Invalid extends WeirError {
  constructor(message, member, line) {
    super(message);
    this.member = member;
    this.line = line;
  }
}

/** There is no such job, limit or batch. */
export class Missing extends WeirError {}

/** The state forbids it: the batch is sealed or cancelled, the job is dead or has ended. */
export class Closed extends WeirError {}

/** The limit allows no slot now. retryAfter: seconds; null: never, as it costs more than the limit can hold. */
export class Denied extends WeirError {
  constructor(message, retryAfter) {
    super(message);
    this.retryAfter = retryAfter;
  }
}

/** The connection was lost on the way: perhaps it was done. Asked again with the same id (a job's, or a batch) it happens once. */
export class Unknown extends WeirError {
  constructor(message, id) {
    super(message);
    this.id = id;
  }
}

/* How a job ends, thrown by its handler. */
class Outcome extends Error {
  constructor(status, reason, after) {
    super(reason);
    this.status = status;
    this.after = after === undefined ? undefined : seconds(after, 'after');
  }
  get name() {
    return this.constructor.name;
  }
}

/** The attempt has failed. after: when the next one comes, else as the worker backs off. */
export class Retry extends Outcome {
  constructor(reason, { after } = {}) {
    super('retry', reason, after);
  }
}

/** The provider said stop: the limits of the type pause for that long, and no attempt is used. */
export class Throttled extends Outcome {
  constructor(after, reason) {
    super('throttled', reason, after);
  }
}

/** The job is kept for a person to look at, and not run again. */
export class Dead extends Outcome {
  constructor(reason) {
    super('dead', reason);
  }
}

export { Outcome };
