import { createInterface } from 'node:readline';

/** The records that Offsite answers. */
type Numbered = SandboxedAsk | SandboxedRun | SandboxedLook | SandboxedEndWork;
type Unnumbered = Numbered extends infer One ? (One extends Numbered ? Omit<One, 'id'> : never) : never;

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
    await this.send({ ...record, id });
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

/** Asks Offsite to run a program of the work, as another user or in another sandbox than this process. */
export interface SandboxedRun {
  kind: 'run';
  id: number;
  command: string;
  args: string[];
  options: { cwd?: string; env?: Record<string, string>; input?: string; timeout?: number };
}

/** Asks for files of a workspace in another sandbox. */
export type SandboxedLook = { kind: 'read'; id: number; path: string } | { kind: 'files'; id: number };

/** Asks Offsite to end all processes of the work. */
export interface SandboxedEndWork {
  kind: 'end-work';
  id: number;
}

/** A validation's request to a model. It goes through Offsite, because the sandbox has no network. */
export interface SandboxedAsk {
  kind: 'ask';
  id: number;
  validation: string;
  method: 'answer' | 'judge';
  request: unknown;
}

/** Every further line of stdin: the answer to the record with this id. */
export type SandboxedReply = { id: number; value: unknown } | { id: number; error: string };

export interface SandboxedValidation {
  kind: 'validation';
  name: string;
  startedAt: number;
  durationMs: number;
  /** `voided`: the validation has no verdict; `message` says why. */
  status: 'passed' | 'failed' | 'voided';
  message?: string | undefined;
  input?: SandboxedText | undefined;
  output?: SandboxedText | undefined;
  error?: string | undefined;
  metadata?: string | undefined;
  logs: { at: number; level: string; text: string }[];
  /** Whether the validation printed more than `logs` contains. */
  logsCut: boolean;
}

export interface SandboxedText {
  text: string;
  format: 'text' | 'json';
}

export type SandboxedRecord =
  | { kind: 'broken'; message: string }
  | { kind: 'begin'; name: string }
  | SandboxedAsk
  | SandboxedRun
  | SandboxedLook
  | SandboxedEndWork
  | SandboxedValidation
  | { kind: 'end' };
