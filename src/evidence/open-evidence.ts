import {
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statfsSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { readPlan, storedPlan } from '../agent/batch-run.ts';
import { makeFolder } from '../base/byte-store.ts';
import type { Clock } from '../base/clock.ts';
import {
  infrastructureError,
  inputError,
  messageOf,
  type OffsiteError,
  systemHint,
} from '../base/offsite-error.ts';
import { parseForeignJson } from '../base/parse-json.ts';
import { evidenceBundles } from '../bounds/anyone.ts';
import type { BatchKey } from '../ledger/batches.ts';
import { addCarriedBatch } from '../ledger/carried-batch.ts';
import { Ledger } from '../ledger/ledger.ts';
import { foreignService } from '../ledger/platform.ts';
import { buildsOf, environmentsOf, type Sandbox } from '../suite/plan.ts';
import { SandboxConfig } from '../suite/sandbox-config.ts';
import {
  type ContentSink,
  type EvidenceOptions,
  readEvidence,
  type VerifiedEvidence,
} from './read-evidence.ts';
import type { Content } from './statement.ts';

export interface OpenedEvidence extends VerifiedEvidence {
  /** The only batch of the new ledger. */
  batch: BatchKey;
  /** The archives of images in the bundle: files in the new folder, as an engine saved them. */
  images: { imageIds: string[]; file: string }[];
  /** The packs of commits that workspaces begin with, and where its plan looks for their repositories. */
  commits: { commit: string; pack: string; repository: string }[];
}

/**
 * Makes a fresh data folder of a bundle, which other commands then use like any other: its batch stands
 * under the service `foreign`, so that nothing runs or reports it. The folder must not exist, or be empty.
 * Its plan is a copy without what names parts of a machine. Throws as `readEvidence` does, the input error
 * `EVIDENCE_FOLDER_USED`, and the infrastructure error `EVIDENCE_NOT_WRITTEN`; nothing is left then.
 */
export async function openEvidence(
  file: string,
  folder: string,
  { clock, ...options }: EvidenceOptions & { clock: Clock },
): Promise<OpenedEvidence> {
  const target = new NewFolder(folder);
  try {
    // Before the contents: blobs without a ledger count as a ledger that is lost.
    using ledger = new Ledger(folder, clock);
    const verified = await readEvidence(file, options, target);
    const { batch, contents } = verified.statement.predicate;
    const plan = batch.plan === undefined ? undefined : await defusedPlan(batch.plan, ledger);
    const key = addCarriedBatch(ledger, { ...batch, plan, service: foreignService });
    const images = contents
      .filter(({ kind }) => kind === 'image')
      .map((content) => ({ imageIds: content.imageIds ?? [], file: target.pathOf(content) }));
    const commits = contents.flatMap(({ commit, ...content }) =>
      content.kind === 'commit' && commit !== undefined && existsSync(target.pathOf(content))
        ? [{ commit, pack: target.pathOf(content), repository: repositoryIn(folder, commit) }]
        : [],
    );
    return { ...verified, batch: key, images, commits };
  } catch (error) {
    target.remove();
    throw error;
  }
}

/** A folder that gets the contents of a bundle. Their names are hashes, so no name leads out of it. */
class NewFolder implements ContentSink {
  readonly #folder: string;
  readonly #isNew: boolean;

  constructor(folder: string) {
    this.#folder = folder;
    this.#isNew = !existsSync(folder);
    if (!this.#isNew && readdirSync(folder).length > 0)
      throw inputError(
        'EVIDENCE_FOLDER_USED',
        `${folder} is not empty, and evidence opens only in a folder of its own`,
        { hint: 'Name a folder that does not exist.' },
      );
    makeFolder(folder, 0o700);
  }

  begin({ predicate: { contents } }: VerifiedEvidence['statement']): void {
    const { bavail, bsize } = statfsSync(this.#folder);
    const all = contents.reduce((sum, { byteSize }) => sum + byteSize, 0);
    if (all > bavail * bsize - evidenceBundles.bytes.spared)
      throw failure(this.#folder, `it needs ${all} bytes, and the disk has ${bavail * bsize} free`);
  }

  pathOf({ kind, sha256 }: Content): string {
    return join(this.#folder, `${kind}s`, sha256.slice(0, 2), sha256);
  }

  open(content: Content) {
    const path = this.pathOf(content);
    const partial = `${path}.partial`;
    const guarded = <Result>(work: () => Result): Result => {
      try {
        return work();
      } catch (error) {
        throw failure(this.#folder, messageOf(error), error);
      }
    };
    // Not synced: the bundle is still there if the machine stops.
    const handle = guarded(() => {
      makeFolder(dirname(path), 0o700);
      return openSync(partial, 'wx', 0o600);
    });
    return {
      write: (piece: Buffer) =>
        guarded(() => {
          for (let done = 0; done < piece.length; ) done += writeSync(handle, piece, done);
        }),
      close: (isWhole: boolean) =>
        guarded(() => {
          closeSync(handle);
          if (isWhole) renameSync(partial, path);
          else rmSync(partial);
        }),
    };
  }

  /** Removes what was written. */
  remove(): void {
    const names = this.#isNew ? [''] : readdirSync(this.#folder);
    for (const name of names) rmSync(join(this.#folder, name), { recursive: true, force: true });
  }
}

/**
 * A plan of somebody else, without what would make this machine act for them: addresses of models, variables
 * of this machine, paths of this machine, and recordings of a ledger that is not here.
 */
async function defusedPlan(sha256: string, ledger: Ledger): Promise<string | undefined> {
  const content = ledger.blobs.tryRead(sha256);
  if (!content) return undefined;
  const plan = readPlan(parseForeignJson(content.toString('utf8')));
  const nowhere = join(ledger.dataFolder, 'not-in-the-evidence');
  for (const { context } of buildsOf(plan)) context.folder = nowhere;
  for (const { source } of plan.cases.flatMap(environmentsOf))
    if (source) source.repository = repositoryIn(ledger.dataFolder, String(source.rebuilt ?? source.commit));
  const variants = plan.variants.map((variant) => ({
    ...variant,
    modelConfig: undefined,
    sandbox: sandboxOf(variant.sandbox),
  }));
  return ledger.blobs.putJson(storedPlan({ ...plan, variants, replay: undefined }));
}

/** Where the repository of a commit is made, when it is needed. */
function repositoryIn(dataFolder: string, commit: string): string {
  const isId = /^([0-9a-f]{40}|[0-9a-f]{64})$/.test(commit);
  return join(dataFolder, isId ? join('repositories', commit) : 'not-in-the-evidence');
}

/** A stored plan has no schema, but somebody else's sandbox must be one that a configuration can have. */
function sandboxOf({ name, timeouts, ...sandbox }: Sandbox): Sandbox {
  const asWritten = Object.entries(timeouts ?? {}).map(([phase, milliseconds]) => [
    phase,
    `${milliseconds}ms`,
  ]);
  const read = SandboxConfig.strip().safeParse({ ...sandbox, timeouts: Object.fromEntries(asWritten) });
  if (read.success) return { name: String(name), ...read.data, passEnv: [] };
  const [issue] = read.error.issues;
  throw inputError(
    'EVIDENCE_REFUSED',
    `the plan of the evidence has a sandbox that cannot be: ${issue?.path.join('.')}: ${issue?.message}`,
    { hint: 'Ask for evidence that `offsite export` wrote.' },
  );
}

function failure(folder: string, why: string, cause?: unknown): OffsiteError {
  return infrastructureError('EVIDENCE_NOT_WRITTEN', `cannot open the evidence in ${folder}: ${why}`, {
    hint: systemHint(cause, 'Name a folder on another disk.'),
    cause,
  });
}
