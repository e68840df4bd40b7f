import { z } from 'zod';
import { At, Millis } from './measures.ts';

export const HarnessEnding = z.discriminatedUnion('ended', [
  z.object({ ended: z.literal('exited'), exitCode: z.number() }),
  z.object({
    ended: z.enum(['agent-failed', 'model-failed', 'runner-broke']),
    message: z.string(),
    exitCode: z.number().optional(),
  }),
  z.object({ ended: z.literal('timed-out'), afterMs: Millis }),
  z.object({ ended: z.literal('stopped'), message: z.string() }),
  z.object({ ended: z.enum(['out-of-disk', 'out-of-memory']) }),
]);
export type HarnessEnding = z.infer<typeof HarnessEnding>;

export const HarnessEvent = z.discriminatedUnion('kind', [
  z.object({ kind: z.enum(['user', 'message', 'note']), at: At, text: z.string() }),
  z.object({
    kind: z.literal('tool'),
    at: At,
    finishedAt: At.optional(),
    name: z.string(),
    input: z.unknown().optional(),
    output: z.string().optional(),
    failed: z.boolean().optional(),
  }),
]);
export type HarnessEvent = z.infer<typeof HarnessEvent>;
