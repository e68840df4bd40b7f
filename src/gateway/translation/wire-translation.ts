import type { JsonObject, WireEvent } from '../wires/lenient.ts';
import type { Losses } from './losses.ts';
import type { NeutralAnswer, NeutralEvent } from './neutral-answer.ts';
import type { NeutralMessage, NeutralRequest, NeutralTool } from './neutral-request.ts';
import type { StreamSteps } from './stream-steps.ts';

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
