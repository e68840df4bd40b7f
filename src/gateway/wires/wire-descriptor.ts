import type { HttpModel, Wire } from '../../suite/model-config.ts';
import type { ServerModel } from '../probe/server-models.ts';
import type { Losses } from '../translation/losses.ts';
import type { NeutralAnswer, NeutralEvent } from '../translation/neutral-answer.ts';
import type { NeutralMessage, NeutralRequest, NeutralTool } from '../translation/neutral-request.ts';
import type { StreamSteps } from '../translation/stream-steps.ts';
import { type JsonObject, objectsOf, type WireEvent } from './lenient.ts';

/**
 * Everything that Offsite knows about one wire: the facts of its API, its requests and its answers. The
 * bodies that it reads are parsed JSON from outside and may have any shape.
 */
export interface WireDescriptor {
  name: Wire;
  /** Its name for people. */
  title: string;
  /** The last part of the base URLs of its APIs. */
  version: string;
  /** The first endpoint is the one for answers. */
  endpoints: readonly [Endpoint, ...Endpoint[]];
  /**
   * For a wire whose paths name the model: reads a path below the base URL. Then the paths of `endpoints` are
   * patterns for people, and bodies have neither `model` nor `stream`.
   */
  targetOf?(path: string): PathTarget | undefined;
  /** The query parameter that a path for a stream must have. */
  streamQuery?: string;
  /** The header that carries a key, unless a model's configuration names another. */
  auth: NonNullable<HttpModel['auth']>;
  /** Headers that identify a client of this wire if its path does not. */
  ownHeaders: readonly string[];
  /** The wire's headers that pass from a client to the model, and the allowed values of each. */
  passedHeaders: Readonly<Record<string, RegExp>>;
  /** Headers of answers that name the account. They stay on this host. */
  accountHeaders: readonly string[];
  /** Headers of this process's own requests. */
  headers: Readonly<Record<string, string>>;
  /** The variables in which most of its clients read an address, here the relay's, and a key. */
  variables(origin: string, key: string): Record<string, string>;
  /** The error body that the wire's clients understand. `code` is lower-case. */
  errorBody(status: number, code: string, message: string): object;
  /** Wires whose lists of models have one form share this object. */
  models: WireModels;
  requests: WireRequests;
  translation: WireTranslation;
}

/** The list of a server's models, `GET /models`, in the form of the wire's provider. */
export interface WireModels {
  /** The query for the whole list, if the answer without a query is only a part of it. */
  query?: string;
  /** Reads a list; undefined if the document has another form. The usual wire's form is tried last. */
  read(document: JsonObject): ServerModel[] | undefined;
  list(names: readonly string[]): object;
  entry(name: string): object;
}

/** Names of members of a wire. */
interface OwnNames {
  /** Members whose values a client, a tool or a schema defines. */
  freeForm: ReadonlySet<string>;
  /** Members that must be spelled like this: some servers read other spellings too. */
  spelled: ReadonlySet<string>;
}

export interface Endpoint {
  /** The path below a model's base URL. */
  path: string;
  /** Writes the answer of an endpoint that counts tokens; other endpoints answer with a model's output. */
  writeCount?: (tokens: number) => JsonObject;
  /** The only query parameter that is sent to the model; all others are dropped. */
  parameter?: string;
}

interface WireRequests {
  accepted: Accepted;
  /** Returns a tool's name for messages if it would run at the model's provider. */
  hostedTool(tool: unknown): string | undefined;
  /** Judges a whole request, for a wire whose conversation and tools have a form of their own. */
  providerSide?(body: JsonObject): string | undefined;
  /** For a wire that shares no names with the others. */
  names?: OwnNames;
  /** The member and its option that ask a stream to end with its usage, if the wire has such an option. */
  usageOption?: { member: string; option: string };
  /** Set if not all servers of the wire can answer in JSON: a form is a tool that the model must call. */
  formIsTool?: true;
}

/** What a path asks for, on a wire whose bodies do not say it. */
export interface PathTarget {
  model: string;
  purpose: 'answer' | 'count';
  streamed: boolean;
}

/** What requests of one wire may contain. Anything else is refused, because its effect is unknown. */
export interface Accepted {
  /** Members of the request. */
  members: ReadonlySet<string>;
  /** Members that make the provider work outside the conversation; they pass with `hostedTools: allow`. */
  hosted: ReadonlySet<string>;
  /** Types of the parts of a conversation. */
  parts: ReadonlySet<unknown>;
  /** Members of a tool. */
  toolMembers: ReadonlySet<string>;
}

/** The texts of content. In all wires content is a string, or a list of parts, and some parts have a text. */
export function textsOf(content: unknown): string[] {
  if (typeof content === 'string') return [content];
  return objectsOf(content)
    .map(({ text, refusal }) => text ?? refusal)
    .filter((text) => typeof text === 'string');
}

/** How one wire is translated: into the neutral form, and out of it. */
export interface WireTranslation {
  /**
   * Reads a request of a client. `model` and `streamed` are known from it or its path. Throws a
   * GatewayRefusal for what the neutral form cannot say.
   */
  readRequest(body: JsonObject, losses: Losses): Omit<NeutralRequest, 'model' | 'streamed'>;
  /** Its conversation and its tools alone. */
  readMessages(body: JsonObject, losses: Losses): NeutralMessage[];
  readTools(body: JsonObject, losses: Losses): NeutralTool[];
  /** Writes a request to a model. Records in `losses` what the wire cannot say. */
  writeRequest(request: NeutralRequest, losses: Losses, to: RequestTarget): JsonObject;
  writeAnswer(answer: NeutralAnswer, asked: Asked): JsonObject;
  /** Reads an answer of a model into steps. */
  read(steps: StreamSteps, losses: Losses): AnswerReader;
  /** Writes a stream for a client. */
  writeStream(asked: Asked, emit: (event: WireEvent) => void): EventWriter;
  /** The path of a request below the base URL. `model`: the model's name in the upstream's API. */
  path(model: string, streamed: boolean): string;
  /** The endpoint that counts tokens, if the wire has one. */
  count?: {
    path(model: string): string;
    /** Converts a request's body to the body that asks for its count of tokens. */
    write(request: JsonObject, model: string): JsonObject;
    read(body: unknown): number | undefined;
  };
}

export interface RequestTarget {
  /** The model's name in the upstream's API. */
  model: string;
  maxOutputTokens: number | undefined;
}

/** The request that an answer belongs to. */
export interface Asked {
  request: NeutralRequest;
  /** Epoch milliseconds. */
  at: number;
  losses: Losses;
}

/** Reads a stream, event by event, or a document. Throws {@link UnreadableAnswer}. */
export interface AnswerReader {
  /**
   * Reads the data of one event. It can be called again after it has thrown.
   *
   * @param name that of the `event` line, where some servers say what others say in the data
   */
  event(data: string, name?: string): void;
  /** The stream ended without an error of its connection. */
  end(): void;
  /** Reads a whole answer, to its end. */
  document(body: unknown): void;
}

export interface EventWriter {
  /** The last event is an `end` or a `failure`. */
  take(event: NeutralEvent): void;
  /** Bytes that it keeps. */
  held(): number;
}
