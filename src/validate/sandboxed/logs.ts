import { AsyncLocalStorage } from 'node:async_hooks';
import { validatorRecords } from '../../bounds/grading.ts';

/** The text that a validation prints, up to a limit. */
export class Logs {
  readonly kept: { at: number; level: string; text: string }[] = [];
  #room = validatorRecords.bytes.logs;
  cut = false;

  keep(level: string, text: string): void {
    if (this.#room > 0) this.kept.push({ at: Date.now(), level, text: text.slice(0, this.#room) });
    if (text.length > this.#room) this.cut = true;
    // An empty line counts too. Otherwise their number would have no limit.
    this.#room = Math.max(0, this.#room - text.length - 1);
  }
}

/**
 * Adds printed text to the logs of the validation that prints it, even if its deadline has passed and the
 * next one runs.
 */
export class LogCapture {
  readonly #running = new AsyncLocalStorage<Logs>();

  /** Captures everything that is written to `stream` from now on. */
  take(stream: NodeJS.WriteStream, level: string): void {
    stream.write = (chunk: unknown, ...rest: unknown[]): boolean => {
      const text = chunk instanceof Uint8Array ? Buffer.from(chunk).toString() : String(chunk);
      this.#running.getStore()?.keep(level, text);
      const callback = rest.find((argument) => typeof argument === 'function');
      callback?.();
      return true;
    };
  }

  during<Result>(logs: Logs, work: () => Result): Result {
    return this.#running.run(logs, work);
  }
}
