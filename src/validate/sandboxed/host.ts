import { createInterface } from 'node:readline';
import type { SandboxedAsk, SandboxedRecord } from '../sandboxed-records.ts';

/** The records that Offsite answers, as they are before they get their id. */
type Unnumbered = SandboxedRecord extends infer One
  ? One extends { id: number }
    ? Omit<One, 'id'>
    : never
  : never;

/**
 * Offsite could not answer a request. This is a failure of the grading, whatever the validator does with the
 * error.
 */
export class AskFailed extends Error {
  override readonly name = 'AskFailed';
}

/**
 * This process's end of the conversation with Offsite. Each record is on its own line, which begins with the
 * order's nonce. Nothing else in the sandbox has seen the nonce.
 */
export class Host {
  readonly order: SandboxedOrder;
  readonly #write: NodeJS.WriteStream['write'];
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>();
  #asked = 0;

  private constructor(order: SandboxedOrder, write: NodeJS.WriteStream['write']) {
    this.order = order;
    this.#write = write;
  }

  /** Reads the order. Call this before the streams are captured. */
  static async open(): Promise<Host> {
    const write = process.stdout.write.bind(process.stdout);
    const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
    const first = await lines.next();
    const host = new Host(JSON.parse(first.value as string) as SandboxedOrder, write);
    host.#listen(lines);
    return host;
  }

  /** Resolves when the record is written. */
  send(record: SandboxedRecord): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#write(`\n${this.order.nonce} ${JSON.stringify(record)}\n`, () => resolve());
    return promise;
  }

  /** Asks a model through Offsite. Rejects with {@link AskFailed} if Offsite has no answer. */
  async ask(validation: string, method: SandboxedAsk['method'], request: unknown): Promise<unknown> {
    try {
      return await this.call({ kind: 'ask', validation, method, request });
    } catch (error) {
      throw new AskFailed(error instanceof Error ? error.message : String(error));
    }
  }

  /** Sends a record with an id and returns Offsite's answer. Rejects with the error that Offsite sends. */
  async call(record: Unnumbered): Promise<unknown> {
    const id = ++this.#asked;
    const reply = Promise.withResolvers<unknown>();
    this.#waiting.set(id, reply);
    await this.send({ ...record, id } as SandboxedRecord);
    return reply.promise;
  }

  /** Whether at least one call has no answer yet. */
  get isAwaited(): boolean {
    return this.#waiting.size > 0;
  }

  async #listen(lines: AsyncIterableIterator<string>): Promise<void> {
    for await (const line of lines) {
      const reply = JSON.parse(line) as SandboxedReply;
      const waiting = this.#waiting.get(reply.id);
      this.#waiting.delete(reply.id);
      if ('error' in reply) waiting?.reject(new Error(reply.error));
      else waiting?.resolve(reply.value);
    }
  }
}

/**
 * The messages between Offsite and the validator's process in the sandbox: lines of JSON, to its stdin and
 * from its stdout.
 */

/** The first line of stdin. */
export interface SandboxedOrder {
  /** The beginning of each record's line. */
  nonce: string;
  /** Absolute path of the validator's module in the sandbox. */
  validator: string;
  workspace: string;
  variables: Record<string, string>;
  trajectory: unknown[];
  finalMessage: string | undefined;
  usage: Record<string, number>;
  filesChanged: string[];
  /** Whether the work is in another sandbox. Then Offsite also answers `read` and `files`. */
  apart: boolean;
}

/** Every further line of stdin: the answer to the record with this id. */
export type SandboxedReply = { id: number; value: unknown } | { id: number; error: string };
