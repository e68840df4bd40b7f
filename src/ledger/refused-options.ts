import { randomUUID } from 'node:crypto';
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { serverFacts } from '../bounds/model.ts';
import { openDataFolder } from './data-folder.ts';

const Kept = z.record(z.string(), z.record(z.string(), z.number()));
type Kept = z.infer<typeof Kept>;

/**
 * The options of requests that servers of models have refused, for all processes of a data folder. It only
 * saves a refused request: what is lost when two processes write at once, or when the file cannot be read, is
 * learned again.
 */
export class RefusedOptionsFile {
  readonly #dataFolder: string;

  constructor(dataFolder: string) {
    this.#dataFolder = dataFolder;
  }

  /** The rules under a key, and when each was learned, in epoch milliseconds. */
  read(key: string): ReadonlyMap<string, number> {
    return new Map(Object.entries(this.#all()[key] ?? {}));
  }

  add(key: string, rules: readonly string[], at: number): void {
    const all = this.#all();
    const learned = { ...all[key], ...Object.fromEntries(rules.map((rule) => [rule, at])) };
    const newest = Object.entries(learned).toSorted(([, one], [, other]) => other - one);
    all[key] = Object.fromEntries(newest.slice(0, serverFacts.count.refusedOptions));
    this.#write(all);
  }

  /** Forgets what `isOf` accepts of the keys, so that it is learned again. */
  forget(isOf: (key: string) => boolean): void {
    const all = this.#all();
    const kept = Object.entries(all).filter(([key]) => !isOf(key));
    if (kept.length < Object.keys(all).length) this.#write(Object.fromEntries(kept));
  }

  get #file(): string {
    return join(this.#dataFolder, 'refused-options.json');
  }

  #all(): Kept {
    try {
      return Kept.parse(JSON.parse(readFileSync(this.#file, 'utf8')));
    } catch {
      // Missing or damaged: there is nothing to lose in it.
      return {};
    }
  }

  #write(all: Kept): void {
    openDataFolder(this.#dataFolder);
    const partial = `${this.#file}.${randomUUID()}.partial`;
    try {
      writeFileSync(partial, JSON.stringify(all), { mode: 0o600 });
      renameSync(partial, this.#file);
    } finally {
      rmSync(partial, { force: true });
    }
  }
}
