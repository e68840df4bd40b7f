import { z } from 'zod';
import {
  CarriedBatch as Carried,
  type CarriedBatch,
  type CarriedRun,
  type CarriedTrial,
} from '../ledger/carried-batch.ts';

/**
 * What the signature of a bundle covers: an in-toto Statement (https://in-toto.io/Statement/v1). Its subjects
 * are the trials with a result, each by the sha256 of its record, which names everything else of the trial by
 * its sha256. Its predicate lists all planned trials, and every content of the bundle in its order.
 */

export const statementType = 'https://in-toto.io/Statement/v1';
export const predicateType = 'https://offsite.dev/evidence/v1';
/** The media type of a statement in an envelope. */
export const payloadType = 'application/vnd.in-toto+json';

const Sha256 = z.string().regex(/^[0-9a-f]{64}$/, 'must be 64 lower-case hexadecimal digits');

const Content = z.strictObject({
  /**
   * `image`: an archive of images of sandboxes, as an engine saves it. `commit`: what a workspace begins
   * with, as a pack of git.
   */
  kind: z.enum(['blob', 'workspace', 'image', 'commit']),
  sha256: Sha256,
  byteSize: z.int().nonnegative(),
  /** The engine's ids of the images in an archive. */
  imageIds: z.array(z.string()).optional(),
  /** Git's id of a commit. */
  commit: z
    .string()
    .regex(/^([0-9a-f]{40}|[0-9a-f]{64})$/)
    .optional(),
});
export type Content = z.infer<typeof Content>;

export const Statement = z.strictObject({
  _type: z.literal(statementType),
  subject: z.array(z.strictObject({ name: z.string(), digest: z.strictObject({ sha256: Sha256 }) })),
  predicateType: z.literal(predicateType),
  predicate: z.strictObject({
    /** The version of the Offsite that wrote it. */
    offsite: z.string(),
    /** Epoch milliseconds. */
    exportedAt: z.int().nonnegative(),
    /** The machine that wrote it. */
    machine: z.strictObject({ os: z.string(), arch: z.string(), node: z.string() }),
    batch: Carried,
    contents: z.array(Content),
    /** The ed25519 key that signs it: its name, and itself as SPKI in base64. Absent without such a key. */
    signer: z.strictObject({ keyId: z.string(), publicKey: z.string() }).optional(),
  }),
});
export type Statement = z.infer<typeof Statement>;

/** A trial of a batch, with its run and the name of its subject. */
export interface NamedTrial {
  name: string;
  run: CarriedRun;
  trial: CarriedTrial;
}

/**
 * All trials of a batch, with the names of their subjects: `batch/case/variant/ordinal`. Where several runs
 * have one case and one variant, because somebody ran it again, the id of the run is added to the variant.
 */
export function namedTrials({ id, runs }: CarriedBatch): NamedTrial[] {
  const cells = Map.groupBy(runs, ({ caseId, variant }) => JSON.stringify([caseId, variant]));
  return runs.flatMap((run) => {
    const { caseId, variant } = run;
    const isOnly = cells.get(JSON.stringify([caseId, variant]))?.length === 1;
    const cell = [id, caseId, isOnly ? variant : `${variant}@${run.id}`];
    return run.trials.map((trial) => ({
      name: [...cell, String(trial.ordinal)].map(part).join('/'),
      run,
      trial,
    }));
  });
}

function part(name: string): string {
  return name.replaceAll('%', '%25').replaceAll('/', '%2F');
}

/** The subjects of a batch. */
export function subjectsOf(batch: CarriedBatch): Statement['subject'] {
  return namedTrials(batch).flatMap(({ name, trial: { result } }) =>
    result ? [{ name, digest: { sha256: result.record } }] : [],
  );
}

/** The name of a content's entry in the bundle. */
export function entryOf({ kind, sha256 }: Pick<Content, 'kind' | 'sha256'>): string {
  return `${kind}s/${sha256}`;
}
