import type { Handlers } from './index.js';

export class Fake implements Disposable {
  /** The jobs that have not ended, and those that are dead, as handlers see them. */
  jobs(type?: string, options?: { state?: string }): Record<string, any>[];
  /** The args of the jobs of a type. */
  args(type: string): any[];
  /** The dead jobs, id -> reason. */
  readonly dead: Record<string, string>;
  /** Sets a limit, as weir rate set. */
  rate(name: string, ...rules: string[]): void;
  /** Keeps jobs of that type, with their results, so long behind their end, as weir worker --keep. */
  keep(type: string, seconds: number): void;
  /** Moves the clock forward. */
  move(seconds: number): void;
  /** Runs what may start at this time, each job by its handler, and returns how many were run. */
  drain(handlers?: Handlers): Promise<number>;
  /** Ends the test mode. */
  end(): void;
  [Symbol.dispose](): void;
}

/** Lets every client of this process speak to a Weir in memory, until its end(). */
export function fake(): Fake;
