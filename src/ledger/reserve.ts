import { closeSync, existsSync, fsyncSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';

/** Bytes: the results of the trials that run when a disk fills up. */
const reserveBytes = 8 * 1024 ** 2;

const chunk = Buffer.alloc(1024 ** 2, 0x5a);

/**
 * Room that is taken while there is some, and given back when there is none: a result that is finished on a
 * full disk must still find its place.
 */
export class Reserve {
  readonly #file: string;
  #spent = false;

  constructor(dataFolder: string) {
    this.#file = join(dataFolder, 'reserve');
  }

  /** Whether the disk was full and the room has been given back. */
  get spent(): boolean {
    return this.#spent;
  }

  /** Takes the room, unless it is taken already. Where the disk has too little, nothing is taken. */
  take(): void {
    if (existsSync(this.#file)) return;
    try {
      const file = openSync(this.#file, 'wx', 0o600);
      try {
        for (let written = 0; written < reserveBytes; written += chunk.length) writeSync(file, chunk);
        fsyncSync(file);
      } finally {
        closeSync(file);
      }
    } catch (error) {
      // Another process has taken it at this moment; or there is no room, and what was got of it is better
      // given back.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') rmSync(this.#file, { force: true });
    }
  }

  /**
   * Does `work`; where the disk is full, once more with the room given back. `isFull` tells of an error
   * whether that was it.
   */
  async lend<Result>(work: () => Promise<Result>, isFull: (thrown: unknown) => boolean): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      if (!isFull(error) || !this.giveBack()) throw error;
      return work();
    }
  }

  /** Gives the room back. Says whether there was any. */
  giveBack(): boolean {
    this.#spent = true;
    const taken = existsSync(this.#file);
    rmSync(this.#file, { force: true });
    return taken;
  }
}
