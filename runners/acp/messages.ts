import type { AnyMessage, Stream } from '@agentclientprotocol/sdk';
import { LineReader } from '../../src/base/line-reader.ts';
import { longestDocument } from '../../src/base/parse-json.ts';
import { acpMessages, harnessLines } from '../../src/bounds/sandbox.ts';
import { excerpt, parsedLine } from '../../src/harness/cli-stream.ts';

type Id = string | number;
type Message = Record<string, unknown>;

/** JSON-RPC's code for a request that cannot be taken. */
const invalidRequestCode = -32600;

interface MessageParts {
  /** Sends a line to the agent. Returns the number of bytes that it has not read yet. */
  send(line: string): number;
  /** Gets the parameters of each `session/update`, in order, as it arrives. */
  onUpdate(params: unknown, at: number): void;
  /** Gets what the agent prints that is no message. */
  onNote(text: string, at: number): void;
  now(): number;
}

/**
 * The messages between Offsite and an agent, which may be hostile. The SDK gets only well-formed JSON-RPC
 * messages, in a bounded number: requests with an id of their own, and answers to requests that were made.
 * Updates do not go through the SDK, which would queue them without a bound.
 */
export class AcpMessages {
  /** For the SDK. */
  readonly stream: Stream;
  /** Resolves with the reason when no more messages can be exchanged with the agent. */
  readonly broken: Promise<string>;
  readonly #parts: MessageParts;
  readonly #reader: LineReader;
  readonly #break: (reason: string) => void;
  /** Requests of the agent that are not answered. */
  readonly #open = new Set<Id>();
  /** Requests of ours that are not answered. */
  readonly #pending = new Set<unknown>();
  #forSdk: ReadableStreamDefaultController<AnyMessage> | undefined;
  #notes = 0;

  constructor(parts: MessageParts) {
    this.#parts = parts;
    const { promise, resolve } = Promise.withResolvers<string>();
    this.broken = promise;
    this.#break = resolve;
    this.#reader = new LineReader(
      (line) => this.#take(line),
      () => this.#break('printed a message that is too large to be read'),
      Math.min(harnessLines.bytes.line, longestDocument()),
    );
    this.stream = {
      readable: new ReadableStream<AnyMessage>({
        start: (controller) => {
          this.#forSdk = controller;
        },
      }),
      writable: new WritableStream<AnyMessage>({ write: (message) => this.#send(message) }),
    };
  }

  push(bytes: Buffer): void {
    this.#reader.push(bytes);
  }

  /** The agent prints no more. */
  end(): void {
    this.#reader.end();
  }

  #take(line: string): void {
    if (line.trim() === '') return;
    const at = this.#parts.now();
    const message = parsedLine(line);
    if (typeof message === 'string') this.#break(`printed a message that is ${message} to be read`);
    else if (message?.jsonrpc !== '2.0' || !this.#takeMessage(message, at)) this.#note(line, at);
  }

  /** Handles a message. Returns false if the message is not known. */
  #takeMessage(message: Message, at: number): boolean {
    const { id, method } = message;
    if (method === undefined) {
      if (!this.#pending.delete(id)) return false;
      this.#forward(message);
      return true;
    }
    if (typeof method !== 'string') return false;
    if (id === undefined) {
      // Notifications of other kinds say nothing about the work.
      if (method === 'session/update') this.#parts.onUpdate(message.params, at);
      return true;
    }
    if (!isId(id)) return false;
    if (this.#open.has(id)) this.#refuse(id, 'a request with this id waits for its answer');
    else if (this.#open.size >= acpMessages.count.requests) this.#refuse(id, 'too many requests wait');
    else {
      this.#open.add(id);
      this.#forward(message);
    }
    return true;
  }

  #forward(message: Message): void {
    this.#forSdk?.enqueue(message as AnyMessage);
  }

  #refuse(id: Id, message: string): void {
    this.#write({ jsonrpc: '2.0', id, error: { code: invalidRequestCode, message } });
  }

  #send(message: AnyMessage): void {
    if ('method' in message) {
      if ('id' in message) this.#pending.add(message.id);
    } else this.#open.delete(message.id as Id);
    this.#write(message);
  }

  #write(message: unknown): void {
    const unread = this.#parts.send(`${JSON.stringify(message)}\n`);
    if (unread > acpMessages.bytes.unread) this.#break('does not read what it is sent');
  }

  #note(line: string, at: number): void {
    this.#notes += 1;
    if (this.#notes <= harnessLines.count.notes) this.#parts.onNote(excerpt(line), at);
  }
}

function isId(id: unknown): id is Id {
  return typeof id === 'string' ? id.length <= acpMessages.bytes.id : Number.isFinite(id);
}
