import { createInterface } from 'node:readline';
import type { SandboxedAsk, SandboxedOrder, SandboxedRecord, SandboxedReply } from './records.ts';

/** An ask that Offsite could not fulfill: the grading's trouble, whatever the validator makes of it. */
export class AskFailed extends Error {
  override readonly name = 'AskFailed';
}

/**
 * This process's end of the conversation with Offsite. A record is a line of its own that begins with the order's nonce, which nothing
 * else in the sandbox has seen.
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

  /** Reads the order; must come before the streams are taken over. */
  static async open(): Promise<Host> {
    const write = process.stdout.write.bind(process.stdout);
    const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
    const first = await lines.next();
    const host = new Host(JSON.parse(first.value as string) as SandboxedOrder, write);
    host.#listen(lines);
    return host;
  }

  /** Resolves once the record is written. */
  send(record: SandboxedRecord): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#write(`\n${this.order.nonce} ${JSON.stringify(record)}\n`, () => resolve());
    return promise;
  }

  /** Rejects with {@link AskFailed} where Offsite has no value for it. */
  async ask(validation: string, method: SandboxedAsk['method'], request: unknown): Promise<unknown> {
    const id = ++this.#asked;
    const reply = Promise.withResolvers<unknown>();
    this.#waiting.set(id, reply);
    await this.send({ kind: 'ask', id, validation, method, request });
    return reply.promise;
  }

  async #listen(lines: AsyncIterableIterator<string>): Promise<void> {
    for await (const line of lines) {
      const reply = JSON.parse(line) as SandboxedReply;
      const waiting = this.#waiting.get(reply.id);
      this.#waiting.delete(reply.id);
      if ('error' in reply) waiting?.reject(new AskFailed(reply.error));
      else waiting?.resolve(reply.value);
    }
  }
}
