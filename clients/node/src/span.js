import { Invalid } from './errors.js';

/* Spans of time: seconds, or a text such as '60s', '1h30m', '1.5d'. */
const UNITS = { us: 1e-6, ms: 1e-3, s: 1, m: 60, h: 3600, d: 86400, w: 604800 };
const TEXT = /^(\d+(\.\d+)?(us|ms|s|m|h|d|w))+$/;

/** Returns seconds. What is no span stays as it is, for Weir to refuse; throws Invalid for a text that is none. */
export function seconds(span, name) {
  if (typeof span !== 'string') return span;
  if (!TEXT.test(span)) throw new Invalid(`${name}: '${span.slice(0, 60)}' is no span of time; write seconds, or '60s', '1h30m'`, name);
  let sum = 0;
  for (const [, number, , unit] of span.matchAll(/(\d+(\.\d+)?)(us|ms|s|m|h|d|w)/g)) sum += Number(number) * UNITS[unit];
  return sum;
}
