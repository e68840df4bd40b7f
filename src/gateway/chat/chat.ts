import type { Usage } from '../../contract/report.ts';

/**
 * A conversation in a form that is independent of the wire, for requests of this process: the bash runner,
 * judges, the simulated user.
 */
export interface ChatRequest {
  /** A configured model of the role; default: its first one. */
  model?: string | undefined;
  system?: string | undefined;
  messages: readonly ChatMessage[];
  tools?: readonly ChatTool[] | undefined;
  /**
   * Requests an answer that is JSON of this schema. Not every server can do that: say the form in the
   * conversation too, and check the answer.
   */
  schema?: { name: string; schema: Record<string, unknown> } | undefined;
  temperature?: number | undefined;
  seed?: number | undefined;
  maxTokens?: number | undefined;
}

export type ChatMessage =
  | { from: 'user'; text: string }
  | { from: 'model'; text: string; calls: readonly ToolCall[] }
  | { from: 'tool'; callId: string; text: string; failed: boolean };

export interface ChatTool {
  name: string;
  description: string;
  /** JSON Schema of its arguments. */
  parameters: Record<string, unknown>;
}

export interface ToolCall {
  id: string;
  name: string;
  /** As the model wrote them; `malformed` if they are not a JSON object. */
  arguments: Record<string, unknown> | { malformed: string };
}

export interface ChatAnswer {
  text: string;
  calls: ToolCall[];
  /** `length`: cut at its limit of tokens. */
  stopped: 'done' | 'tools' | 'length' | 'refused';
  usage: Usage;
  /** The model's name in the upstream's answer. */
  model: string | undefined;
}
