import { closeSync, existsSync, fsyncSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';

/** Bytes, enough for the results of the trials that run when the disk fills up. */
const reserveBytes = 8 * 1024 ** 2;

const chunk = Buffer.alloc(1024 ** 2, 0x5a);

/**
 * Disk space that is taken while the disk has some and released when it is full, so that the results of
 * running trials can still be stored on a full disk.
 */
export class Reserve {
  readonly #file: string;
  #spent = false;

  constructor(dataFolder: string) {
    this.#file = join(dataFolder, 'reserve');
  }

  /** Whether the disk was full and the space has been released. */
  get spent(): boolean {
    return this.#spent;
  }

  /** Takes the space, unless it is already taken. If the disk has too little, takes none. */
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
      // EEXIST: another process has just taken it. Otherwise the disk has too little space, and we release
      // what we got.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') rmSync(this.#file, { force: true });
    }
  }

  /**
   * Does `work`. If the disk is full, releases the space and does `work` once more.
   *
   * @param isFull whether an error means that the disk is full
   */
  async lend<Result>(work: () => Promise<Result>, isFull: (thrown: unknown) => boolean): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      if (!isFull(error) || !this.giveBack()) throw error;
      return work();
    }
  }

  /** Releases the space. Returns whether there was any. */
  giveBack(): boolean {
    this.#spent = true;
    const taken = existsSync(this.#file);
    rmSync(this.#file, { force: true });
    return taken;
  }
}
