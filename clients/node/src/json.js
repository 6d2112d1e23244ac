/* Writes JSON as Weir takes it. JSON.stringify() turns NaN into null, and has no digits for a BigInt. */
import { Invalid } from './errors.js';

const HALF = /\p{Surrogate}/u;

function text(value, member) {
  if (HALF.test(value)) throw new Invalid('not JSON: half a surrogate pair', member);
  return JSON.stringify(value);
}

function write(value, member, above) {
  if (value !== null && (typeof value === 'object' || typeof value === 'bigint') && typeof value.toJSON === 'function') value = value.toJSON();
  switch (typeof value) {
    case 'string':
      return text(value, member);
    case 'number':
      if (!Number.isFinite(value)) throw new Invalid(`not JSON: ${value} is no number of JSON`, member);
      return String(value);
    case 'bigint':
    case 'boolean':
      return String(value);
    case 'object':
      break;
    default:
      throw new Invalid(`not JSON: a value of kind ${typeof value}`, member);
  }
  if (value === null) return 'null';
  if (value instanceof Number || value instanceof String || value instanceof Boolean) return write(value.valueOf(), member, above);
  if (above.has(value)) throw new Invalid('not JSON: it holds itself', member);
  above.add(value);
  const parts = Array.isArray(value)
    ? Array.from(value, (one) => write(one === undefined ? null : one, member, above))
    : Object.entries(value)
        .filter(([, one]) => one !== undefined)
        .map(([name, one]) => `${text(name, member)}:${write(one, member, above)}`);
  above.delete(value);
  return Array.isArray(value) ? `[${parts.join(',')}]` : `{${parts.join(',')}}`;
}

/** member: of the document, for the error. Throws Invalid. */
export function stringify(value, member) {
  try {
    return write(value, member, new Set());
  } catch (e) {
    if (e instanceof RangeError) throw new Invalid('not JSON: nested too deep', member);
    throw e;
  }
}

/** Writes a document, each member by itself, so that an error names it. */
export function documentText(document) {
  return `{${Object.entries(document)
    .map(([name, value]) => `${JSON.stringify(name)}:${stringify(value, name)}`)
    .join(',')}}`;
}
