import type { Wire } from '../../suite/model-config.ts';
import type { OfferedTool } from '../wires/model-request.ts';

/** The parts of a model request that matter for choosing an answer, in the same form for all wires. */
export interface Conversation {
  wire: Wire;
  model: string;
  system: string;
  messages: Message[];
  tools: OfferedTool[];
  streamed: boolean;
  /** Whether it asks for usage in a stream. */
  usageAsked: boolean;
  /** Characters of the whole request; its tokens are estimated from this. */
  length: number;
}

/** Consecutive messages of the model count as one. */
export type Message =
  | { from: 'user'; text: string }
  | { from: 'model'; text: string; calls: number }
  | { from: 'tool'; text: string };
