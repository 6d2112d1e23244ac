export { Weir } from './client.js';
export { Closed, Dead, Denied, Invalid, Missing, Refused, Retry, Throttled, Unknown, Unreachable, WeirError } from './errors.js';
export { Handlers, Job, handler, run } from './handlers.js';
