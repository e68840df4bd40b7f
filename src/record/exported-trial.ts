import { z } from 'zod';
import { At } from './measures.ts';
import type { SuiteCommit } from './suite-commit.ts';
import { TrialRecord } from './trial-record.ts';

export const Commit: z.ZodType<SuiteCommit> = z
  .strictObject({
    id: z
      .string()
      .regex(/^[0-9a-f]{40,64}$/)
      .meta({ description: 'The whole hash.' }),
    dirty: z.boolean().meta({ description: "Whether files of the suite's folder differed from it." }),
  })
  .meta({ description: 'Of the repository that the suite is in.' });

const ExportedAttempt = z
  .object({
    number: z.number().meta({ description: 'From 1.' }),
    startedAt: At,
    endedAt: At.optional(),
    ending: z.string().optional().meta({ description: 'A verdict, or how it was abandoned.' }),
    cause: z.unknown().optional().meta({ description: 'Why it has no verdict.' }),
    record: TrialRecord.optional().meta({ description: 'What an attempt that does not count had found.' }),
  })
  .meta({ description: 'One attempt at a trial. Only the last one gave the trial its result.' });

/** One line of `offsite export --json`: a trial with everything that is known about it. */
export const ExportedTrial = z.object({
  version: z.literal(1),
  batch: z.object({
    id: z.string(),
    service: z.string().meta({ description: 'Whom the results are reported to.' }),
    suite: z.string(),
    startedAt: At,
    commit: Commit.optional(),
  }),
  run: z.object({ id: z.string(), caseId: z.string(), caseName: z.string(), variant: z.string() }),
  ordinal: z.number(),
  attempts: z.array(ExportedAttempt),
  record: TrialRecord,
  contents: z
    .record(z.string(), z.string())
    .optional()
    .meta({
      description:
        'With `--with-outputs`: the texts that the record refers to by sha256: changed files before and after, ' +
        'the logs of install and prepare, and recorded model traffic.',
    }),
});

export type ExportedTrial = z.infer<typeof ExportedTrial>;
