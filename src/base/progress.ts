import type { Clock } from './clock.ts';

/**
 * Runs one long step; reports its start, its progress, and how long it took. Returns what the step returns.
 */
export type During = <T>(title: string, work: () => Promise<T>) => Promise<T>;

/** Receives the progress: one call when a step begins, one every `everyMs` while it runs, one at its end. */
export interface ProgressWords {
  everyMs: number;
  begins(title: string): void;
  goesOn(title: string, seconds: number): void;
  ends(title: string, seconds: number, how: 'done' | 'failed'): void;
}

export function progress(words: ProgressWords, clock: Clock): During {
  return async (title, work) => {
    const began = clock.now();
    const seconds = () => Math.round((clock.now() - began) / 1000);
    const over = new AbortController();
    words.begins(title);
    const beating = beat(clock, words.everyMs, over.signal, () => words.goesOn(title, seconds()));
    try {
      const result = await work();
      words.ends(title, seconds(), 'done');
      return result;
    } catch (error) {
      words.ends(title, seconds(), 'failed');
      throw error;
    } finally {
      over.abort();
      await beating;
    }
  };
}

/** Reports progress as plain lines for log files: at the beginning, every ten seconds, and at the end. */
export function progressLines(log: (line: string) => void, clock: Clock): During {
  return progress(
    {
      everyMs: 10_000,
      begins: (title) => log(`${title} ...`),
      goesOn: (title, seconds) => log(`${title}: ${seconds} s so far`),
      ends: (title, seconds, how) =>
        log(`${title}: ${how === 'done' ? 'done in' : 'failed after'} ${seconds} s`),
    },
    clock,
  );
}

async function beat(clock: Clock, everyMs: number, over: AbortSignal, tick: () => void): Promise<void> {
  const wakes = () =>
    clock.sleep(everyMs, over).then(
      () => true,
      () => false, // only the end of the step cuts this sleep short
    );
  while (await wakes()) tick();
}
