import { z } from 'zod';

/** The protocols of models, in the order of `gateway/wires/wire-table.ts`. Files and records have these names. */
export const wires = ['openai-chat', 'openai-responses', 'anthropic-messages', 'gemini'] as const;
export type Wire = (typeof wires)[number];

export const WireName = z.enum(wires);
