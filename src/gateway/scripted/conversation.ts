import type { Wire } from '../../suite/model-config.ts';
import type { OfferedTool } from '../wires/model-request.ts';

/** What of a model request matters for choosing an answer, the same for all wires. */
export interface Conversation {
  wire: Wire;
  model: string;
  system: string;
  messages: Message[];
  tools: OfferedTool[];
  streamed: boolean;
  /** Whether it asks a stream to tell its usage. */
  usageAsked: boolean;
  /** Characters of the whole request: what its tokens are estimated from. */
  length: number;
}

/** Messages of the model that follow each other directly are one. */
export type Message =
  | { from: 'user'; text: string }
  | { from: 'model'; text: string; calls: number }
  | { from: 'tool'; text: string };
