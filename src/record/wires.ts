import { z } from 'zod';

/**
 * The protocols of models, as files name them. The first is the usual one, and lists of them have this order.
 */
export const wires = ['openai-chat', 'openai-responses', 'anthropic-messages', 'gemini'] as const;
export type Wire = (typeof wires)[number];
/** The wires of a model: at least one, the preferred one first. */
export type Wires = readonly [Wire, ...Wire[]];

export const WireName = z.enum(wires);
