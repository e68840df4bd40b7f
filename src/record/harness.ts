import { z } from 'zod';
import { TrajectoryEntry } from '../contract/report.ts';
import { At, Millis } from './measures.ts';

const timesBy = z.literal('arrival').optional().meta({
  description:
    'Set if the times are only those at which the lines that report it arrived, so that they say about how long it took.',
});

/** A command, with how its times are known. */
export const CommandEntry = TrajectoryEntry.extend({ timesBy });
export type CommandEntry = z.infer<typeof CommandEntry>;

/**
 * How a turn ended. The exit code does not decide the verdict. `agent-failed`: the harness says that it gave
 * up or reached one of its own limits. `model-failed`: all attempts to reach its model failed or were
 * answered with errors. `runner-broke`: it crashed, or printed what no known version prints; nothing is
 * known about the agent. `out-of-disk`: it wrote more than the sandbox allows.
 */
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
    timesBy,
    name: z.string(),
    input: z.unknown().optional(),
    output: z.string().optional(),
    failed: z.boolean().optional(),
  }),
]);
export type HarnessEvent = z.infer<typeof HarnessEvent>;
