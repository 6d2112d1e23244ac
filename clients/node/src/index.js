export { Weir } from './client.js';
export { Closed, Dead, Denied, Invalid, Missing, Refused, Retry, Throttled, Unknown, Unreachable, WeirError } from './errors.js';
export { Handlers, Job, Result, handler, run } from './handlers.js';
