import type { Wire } from '../../suite/model-config.ts';
import type { ChatRequest } from '../chat/chat.ts';
import type { ScriptedAnswer } from '../scripted/answer.ts';
import type { Accepted } from './accepted.ts';
import type { AnswerFacts, StreamReader } from './answer-facts.ts';
import type { JsonObject } from './lenient.ts';
import type { ModelRequest } from './model-request.ts';
import type { Reply } from './reply.ts';
import type { WireEvent } from './wire-event.ts';

/**
 * All that Offsite knows of one wire: the facts of its API, its requests and its answers. Bodies that it
 * reads are parsed JSON from outside: any shape may come.
 */
export interface WireDescriptor {
  name: Wire;
  /** The first is where answers are asked for. */
  endpoints: readonly [Endpoint, ...Endpoint[]];
  /** The header that carries a key, unless a model's configuration names another. */
  auth: 'bearer' | 'x-api-key';
  /** Headers by which a client shows that it speaks this wire, where its path does not. */
  ownHeaders: readonly string[];
  /** The wire's headers that pass from a client to the model, and how each may look. */
  passedHeaders: Readonly<Record<string, RegExp>>;
  /** Headers of a request that this process makes itself. */
  headers: Readonly<Record<string, string>>;
  /** The error body that the wire's clients understand. `code` is lower-case. */
  errorBody(status: number, code: string, message: string): object;
  /** The list of models, and one of them, in the shape of the wire's maker. */
  modelList(names: readonly string[]): object;
  modelEntry(name: string): object;
  requests: WireRequests;
  answers: WireAnswers;
}

export interface Endpoint {
  /** Below a model's base URL. */
  path: string;
  /** The answer of an endpoint that counts tokens; other endpoints answer with what a model says. */
  writeCount?: (tokens: number) => JsonObject;
  /** The one query parameter that goes on to the model; all others are left out. */
  parameter?: string;
}

export interface WireRequests {
  accepted: Accepted;
  /** Names a tool for people where it would run at the model's provider. */
  hostedTool(tool: unknown): string | undefined;
  /** The member and its option that ask a stream to end with its usage, where the wire has such an option. */
  usageOption?: { member: string; option: string };
  read(body: JsonObject): ModelRequest;
  /** A request of this process. What the wire has no word for is left out. */
  write(model: string, request: ChatRequest): JsonObject;
}

export interface WireAnswers {
  /** The facts of an answer that came in one piece. */
  readFacts(body: unknown): AnswerFacts;
  /** The same of an answer that comes as a stream. */
  readStream(): StreamReader;
  /**
   * What the model says in an answer to `request`; undefined where the document is no answer of this wire.
   */
  readReply(body: unknown, request: ChatRequest): Reply | undefined;
  /** A scripted answer as one document. `at`: epoch milliseconds. */
  write(answer: ScriptedAnswer, at: number): JsonObject;
  /** A scripted answer as the events of a stream. */
  writeStream(answer: ScriptedAnswer, how: StreamForm): Generator<WireEvent>;
}

export interface StreamForm {
  /** Characters of text or arguments in one event. */
  characters: number;
  /** Epoch milliseconds. */
  at: number;
  /** Whether the request asked for usage by the wire's {@link WireRequests.usageOption}. */
  usageAsked: boolean;
}
