import { isObject, type JsonObject, objectsOf } from './lenient.ts';

/** A request to a model in no wire's own form. Unknown parts are left out: harnesses send many. */
export interface ModelRequest {
  /** The system texts, in their order. */
  system: string[];
  messages: RequestMessage[];
  tools: OfferedTool[];
}

/**
 * `texts` are those of a message's parts, in their order. A model that says one thing may take several
 * messages for it.
 */
export type RequestMessage =
  /** `besideResults`: it came in one message with tool results. */
  | { from: 'user'; texts: string[]; besideResults?: true }
  | { from: 'model'; texts: string[]; calls: RequestedCall[] }
  | { from: 'tool'; callId: string; texts: string[] };

/** A tool call, as an earlier answer made it. */
export interface RequestedCall {
  id: string;
  name: string;
  /** A text or an object, as the wire has it. */
  arguments: unknown;
}

export interface OfferedTool {
  name: string;
  /** JSON Schema of its arguments. */
  parameters: JsonObject;
}

/** The texts of content as all wires have it: a string, or a list of parts of which some have a text. */
export function textsOf(content: unknown): string[] {
  if (typeof content === 'string') return [content];
  return objectsOf(content)
    .map(({ text, refusal }) => text ?? refusal)
    .filter((text) => typeof text === 'string');
}

/** A tool that a request offers; none where it has no name. */
export function toolOf(name: unknown, parameters: unknown): OfferedTool[] {
  return typeof name === 'string' ? [{ name, parameters: isObject(parameters) ? parameters : {} }] : [];
}
