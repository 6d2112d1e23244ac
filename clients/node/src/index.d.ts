/** Seconds, or a text: '60s', '1h30m'. */
export type Span = number | string;

/** What a job costs: slots of each rate, or by name, for rules with of=tokens; plain are the others. */
export type Cost = number | { plain?: number; [name: string]: number | undefined };

export interface WeirOptions {
  /** redis://, rediss://, unix:// or a path; http:// or https:// of weir serve. Default: $REDIS_URL. */
  url?: string;
  /** A connection of your own: a client of ioredis, or a connected one of redis. */
  redis?: object;
  /** Default: $WEIR_NAMESPACE, else "weir". */
  namespace?: string;
  /** Of weir serve. Default: $WEIR_TOKEN. */
  token?: string;
}

export interface Abortable {
  /** Ends waiting with its reason. What was sent by then may be done all the same. */
  signal?: AbortSignal;
}

export interface JobOptions extends Abortable {
  /** A name that is accepted once within `remember`. */
  id?: string;
  queue?: string;
  /** What keyed limits tell jobs apart by. */
  key?: string;
  /** Slots that it takes of each rate. */
  cost?: Cost;
  /** It starts so much later. */
  delay?: Span;
  /** It starts then: a date, or seconds since 1970. */
  at?: Date | number;
  /** A key: while a job holds it, no other with that key comes in. */
  unique?: string;
  /** How long it holds the key. Default: 'end', until it has ended. */
  uniqueUntil?: 'end' | 'start' | Span;
  batch?: string;
  /** So long its id is known. Default: a day. */
  remember?: Span;
  /** Of one attempt. */
  timeout?: Span;
  maxAttempts?: number;
  traceparent?: string;
  /** For the handler. */
  meta?: unknown;
}

export interface Enqueued {
  id: string;
  /** False: the id was known, or another job holds the unique key. */
  new: boolean;
  /** True: `id` is that of the job which holds the unique key. */
  locked: boolean;
}

export interface BulkOptions extends Abortable {
  /** Call it again with the same rows after any failure, and each job is there once. */
  batch?: string;
  /** A job of that type follows when all of the batch have ended. */
  then?: string;
  queue?: string;
}

export interface Bulk {
  /** Of the input, those included that an earlier run had sent. */
  lines: number;
  /** Enqueued by this call. */
  jobs: number;
  /** Lines that an earlier run had sent. */
  resumed: number;
}

export interface JobState {
  id: string;
  /** More may come. */
  state: 'waiting' | 'parked' | 'held' | 'aside' | 'running' | 'scheduled' | 'retry' | 'dead' | 'finished' | string;
  type: string;
  queue: string;
  attempts: number;
  /** What its handler left, of finished. */
  result?: any;
  [member: string]: unknown;
}

export interface BatchState {
  batch: string;
  state: 'open' | 'sealed' | 'ended' | 'cancelled';
  total: number;
  left: number;
  done: number;
  dead: number;
  cancelled: number;
  failed: number;
  lines: number;
  sum: string;
  [member: string]: unknown;
}

export interface RateOptions extends Abortable {
  key?: string;
  cost?: Cost;
}

export interface TakeOptions extends RateOptions {
  /** It stands in line that long, if its slot comes within that time. */
  wait?: Span;
  /** Asks also when the same was denied a moment ago. */
  fresh?: boolean;
}

export interface Take {
  allowed: boolean;
  /** The burst. */
  limit: number;
  /** Slots that are free now. */
  remaining: number;
  /** Seconds until all are. */
  resetAfter: number;
  /** Of a denial: seconds; null: never, or it is none. */
  retryAfter: number | null;
  startAfter: number;
}

export interface HoldOptions extends RateOptions {
  /** It stands in line that long. */
  wait?: Span;
  /** How long the slots stay held if this program dies (30 s). */
  ttl?: Span;
}

export interface Hold extends AsyncDisposable {
  token: string;
  /** What it has cost in truth, for the rates. */
  spent?: Cost;
  /** The slots may be another's: stop. */
  readonly lost: boolean;
  /** Ends then. */
  readonly signal: AbortSignal;
  /** Gives the slots back. Missing: it was not held to the end. */
  end(): Promise<void>;
}

/** Speaks to one Redis and one namespace, or to weir serve. It connects at the first call. */
export class Weir {
  constructor(options?: WeirOptions);
  /** Enqueues one job. It arrives once, also over a connection that breaks. */
  enqueue(type: string, args?: unknown, options?: JobOptions): Promise<Enqueued>;
  /** Enqueues a job for each row, in constant memory. type null: each row is a job, {type, args, ...}. */
  enqueueMany(type: string | null, rows: Iterable<unknown> | AsyncIterable<unknown>, options?: BulkOptions): Promise<Bulk>;
  /** Where a job is. Missing: it is done, or was never enqueued. */
  job(id: string, options?: Abortable): Promise<JobState>;
  /** The job once it is finished or dead, or as it stands when the time is over. Missing: it is done and its type is not kept. */
  wait(id: string, timeout: Span, options?: Abortable): Promise<JobState>;
  /** Ends a job in any state. 'told': it runs, and its worker was told. */
  cancel(id: string, options?: Abortable): Promise<'removed' | 'marked' | 'told' | 'already' | string>;
  batch(name: string, options?: Abortable): Promise<BatchState>;
  /** No more jobs come into the batch. enqueueMany() does it itself. */
  seal(name: string, options?: { then?: string; queue?: string } & Abortable): Promise<BatchState>;
  /** Takes a slot, and says whether it was allowed. */
  take(limit: string, options?: TakeOptions): Promise<Take>;
  /** The same, for `await using`. Throws Denied. A slot that was taken stays taken. */
  slot(limit: string, options?: TakeOptions): Promise<Take & AsyncDisposable>;
  /** Holds slots, of concurrency too, until end(), for `await using`: renewed meanwhile, and back after ttl if this program dies. Throws Denied. */
  hold(limit: string, options?: HoldOptions): Promise<Hold>;
  /** How a limit is; nothing is taken. */
  rate(limit: string, options?: RateOptions): Promise<Take>;
  /** What this Weir can do. */
  about(options?: Abortable): Promise<{ protocol: number; verbs: string[]; capabilities: string[]; partitions: number }>;
  /** Carries a document of the protocol as it is, and returns the answer as it came. */
  call(verb: string, text: string, options?: Abortable): Promise<string>;
  /** Ends the connection that it made. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export class WeirError extends Error {}
/** Nothing was done: trying again is safe. */
export class Unreachable extends WeirError {}
/** A login, token or right is missing. */
export class Refused extends WeirError {}
/** The call is wrong. */
export class Invalid extends WeirError {
  /** The member of the document that is wrong. */
  member?: string;
  /** The row of a bulk, from 1. */
  line?: number;
}
export class Missing extends WeirError {}
export class Closed extends WeirError {}
export class Denied extends WeirError {
  /** Seconds; null: never. */
  retryAfter: number | null;
}
/** Perhaps it was done. Asked again with `id` it happens once. */
export class Unknown extends WeirError {
  id?: string;
}

/** The attempt has failed; again after that, else as the worker backs off. */
export class Retry extends Error {
  constructor(reason?: string, options?: { after?: Span });
}
/** The limits of the type pause that long; no attempt is used. */
export class Throttled extends Error {
  constructor(after?: Span, reason?: string);
}
/** The job is kept for a person to look at. */
export class Dead extends Error {
  constructor(reason?: string);
}

export class Job {
  constructor(text: string);
  id: string;
  type: string;
  args: any;
  /** From 1. */
  attempt: number;
  /** Seconds since 1970. */
  enqueuedAt?: number;
  key?: string;
  traceparent?: string;
  meta?: any;
  /** All of it. */
  document: Record<string, unknown>;
  /** The line as it came: numbers beyond 2^53 have their digits there. */
  text: string;
  /** Tells the true cost. */
  spent(cost: Cost): void;
}

/** What a handler returns to leave what came of its job, any JSON of at most 64 KiB: kept with it where its type is (weir worker --keep). One
 * that is no JSON, or larger, is left out, and the log says so. */
export class Result {
  constructor(value: unknown);
}

/** signal: the worker ends this process, as a job in it was cancelled or is over its time. */
export type Handler = (job: Job, context: { signal: AbortSignal }) => unknown;

export class Handlers {
  handler(type: string, fn: Handler): void;
  has(type: string): boolean;
  run(): Promise<never>;
}
/** Calls fn for each job of the type; when its promise resolves, the job is done. */
export function handler(type: string, fn: Handler): void;
/** Runs jobs as the child of weir worker --pipe 'TYPE=node this.js' --in-flight N. */
export function run(): Promise<never>;
