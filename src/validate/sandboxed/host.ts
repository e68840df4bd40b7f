import { createInterface } from 'node:readline';
import type {
  SandboxedAsk,
  SandboxedLook,
  SandboxedOrder,
  SandboxedRecord,
  SandboxedReply,
  SandboxedRun,
  SandboxedStill,
} from './records.ts';

/** What Offsite answers to. */
type Numbered = SandboxedAsk | SandboxedRun | SandboxedLook | SandboxedStill;
type Unnumbered = Numbered extends infer One ? (One extends Numbered ? Omit<One, 'id'> : never) : never;

/** An ask that Offsite could not fulfill: the grading's trouble, whatever the validator makes of it. */
export class AskFailed extends Error {
  override readonly name = 'AskFailed';
}

/**
 * This process's end of the conversation with Offsite. A record is a line of its own that begins with the
 * order's nonce, which nothing else in the sandbox has seen.
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
    try {
      return await this.call({ kind: 'ask', validation, method, request });
    } catch (error) {
      throw new AskFailed(error instanceof Error ? error.message : String(error));
    }
  }

  /** What Offsite answers to anything that has an id. Rejects with what it says went wrong. */
  async call(record: Unnumbered): Promise<unknown> {
    const id = ++this.#asked;
    const reply = Promise.withResolvers<unknown>();
    this.#waiting.set(id, reply);
    await this.send({ ...record, id });
    return reply.promise;
  }

  /** Whether something was asked for that is not answered yet. */
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
