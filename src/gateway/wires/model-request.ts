import { isObject, type JsonObject, objectsOf } from './lenient.ts';

/**
 * A request to a model in a form that is independent of the wire. Unknown parts are left out: harnesses send
 * many.
 */
export interface ModelRequest {
  /** The system texts, in their order. */
  system: string[];
  messages: RequestMessage[];
  tools: OfferedTool[];
}

/**
 * `texts` are the texts of a message's parts, in order. One answer of a model may be split into several
 * messages.
 */
export type RequestMessage =
  /** `besideResults`: it was in the same message as tool results. */
  | { from: 'user'; texts: string[]; besideResults?: true }
  | { from: 'model'; texts: string[]; calls: RequestedCall[] }
  | { from: 'tool'; callId: string; texts: string[] };

/** A tool call from an earlier answer. */
export interface RequestedCall {
  id: string;
  name: string;
  /** A string or an object, as in the wire. */
  arguments: unknown;
}

export interface OfferedTool {
  name: string;
  /** JSON Schema of its arguments. */
  parameters: JsonObject;
}

/** The texts of content. In all wires content is a string, or a list of parts, and some parts have a text. */
export function textsOf(content: unknown): string[] {
  if (typeof content === 'string') return [content];
  return objectsOf(content)
    .map(({ text, refusal }) => text ?? refusal)
    .filter((text) => typeof text === 'string');
}

/** A tool that a request offers; empty if it has no name. */
export function toolOf(name: unknown, parameters: unknown): OfferedTool[] {
  return typeof name === 'string' ? [{ name, parameters: isObject(parameters) ? parameters : {} }] : [];
}
