import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { messageOf, OffsiteError } from '../base/offsite-error.ts';
import { gitSources } from '../bounds/suite.ts';
import {
  CarriedBatch as Carried,
  type CarriedBatch,
  type CarriedRun,
  type CarriedTrial,
} from '../ledger/carried-batch.ts';
import type { Redactor } from '../redaction/redactor.ts';
import { committedEntries, contentsOf } from '../suite/git/commit-files.ts';
import { finishRepository, gitIn, makeRepository } from '../suite/git/kept-commits.ts';
import { failed } from '../suite/git/run-git.ts';
import { environmentsOf, type SuitePlan } from '../suite/plan.ts';

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

/**
 * The commits that workspaces begin with, as packs of git. They hold what the sandbox got: a suite in the
 * same repository is not in them.
 */

interface Reading {
  env: NodeJS.ProcessEnv;
  signal: AbortSignal;
}

/** The id of each commit, with the bare repository that the plan says it is in. */
export function commitsOf({ cases }: Pick<SuitePlan, 'cases'>): Map<string, string> {
  return new Map(
    cases
      .flatMap(environmentsOf)
      .flatMap(({ source }) => (source ? [[source.rebuilt ?? source.commit, source.repository]] : [])),
  );
}

/** The file with all objects of a kept commit. Undefined if it is no longer kept. */
export function packOf(repository: string): string | undefined {
  const folder = join(repository, 'objects', 'pack');
  const packs = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.pack')) : [];
  return packs.length === 1 ? join(folder, packs[0] ?? '') : undefined;
}

/** Whether a key is in a commit or in one of its files, which a pack compresses. */
export async function hasKeyIn(
  commit: string,
  repository: string,
  { redactor, ...reading }: Reading & { redactor: Redactor },
): Promise<boolean> {
  const from = { ...reading, repository };
  const entries = await committedEntries(commit, from);
  const files = entries.filter(({ kind }) => kind !== 'folder' && kind !== 'submodule');
  const holdsKey = (content: Buffer) => {
    const search = redactor.search();
    return search.push(content) || search.end();
  };
  if (holdsKey(await gitIn(from, ['cat-file', 'commit', commit]))) return true;
  for await (const content of contentsOf(files, from)) if (holdsKey(content)) return true;
  return false;
}

/**
 * Makes a bare repository of somebody else's pack, as if the commit had been fetched. Git computes the id of
 * each object from its content. Throws the input error `GIT_FAILED` if the commit is not whole in the pack;
 * nothing is left then.
 */
export async function unpackCommit(
  commit: string,
  { pack, repository }: { pack: string; repository: string },
  { env, signal }: Reading,
): Promise<void> {
  const made = { repository, env, signal };
  try {
    mkdirSync(repository, { recursive: true, mode: 0o700 });
    await makeRepository(made, commit);
    const most = `--max-input-size=${gitSources.bytes.fetched}`;
    await gitIn(made, ['index-pack', '--stdin', most], pack);
    const text = (await gitIn(made, ['cat-file', 'commit', commit])).toString('latin1');
    // Its parents are not in the pack, as after a shallow fetch.
    const [head = ''] = text.split('\n\n');
    if (/^parent /m.test(head)) writeFileSync(join(repository, 'shallow'), `${commit}\n`);
    await finishRepository(made, commit);
  } catch (error) {
    rmSync(repository, { recursive: true, force: true });
    signal.throwIfAborted();
    if (error instanceof OffsiteError) throw error;
    throw failed(messageOf(error));
  }
}
