import { createHash } from 'node:crypto';
import { posix } from 'node:path';
import { OffsiteError } from '../../base/offsite-error.ts';
import { printedText } from '../../bounds/anyone.ts';
import { commandOutput } from '../../bounds/sandbox.ts';
import type { NewEntry } from '../../engine/archive/entries.ts';
import type { Container } from '../../engine/container.ts';
import type { Engine } from '../../engine/engine.ts';
import { howItEnded } from '../../engine/exec/exec-request.ts';
import type { Runner } from '../../harness/runner.ts';
import type { BuildLogs } from '../../ledger/build-logs.ts';
import type { EnvironmentStep } from '../../record/environment.ts';
import type { PlacedFile } from '../../suite/environment.ts';
import { sourceEntries } from '../../suite/git/commit-files.ts';
import type { PlannedSource } from '../../suite/git/git-source.ts';
import type { Variables } from '../../suite/variables.ts';
import { TrialFailure, taskFailure } from '../blame.ts';
import { preparationEnvironment, sandboxPaths } from '../prepare/environment.ts';
import type { BuildState, ObserveBuild } from '../prepare/obtain-image.ts';

/** What is needed to build the images of trials. All trials of a batch share it. */
export interface ImageParts {
  engine: Engine;
  /** The host's extra certificates, for install and prepare. */
  extraCertificates: Buffer | undefined;
  runners: readonly Runner[];
  /** The host's environment, in which git is found. */
  env: Readonly<NodeJS.ProcessEnv>;
  /**
   * What was looked up or made for this batch, by what decides it: images, volumes, what runs in them. A
   * batch looks up each image once, so it keeps using the same image even if its name is given to another one
   * meanwhile. Clear this map if one of the images was removed.
   */
  known: Map<string, unknown>;
  /** What earlier steps printed, in this process or another. Undefined if nobody will look at it. */
  buildLogs: BuildLogs | undefined;
  /** Failures by the same keys: a script that failed is not run again for the next trial. */
  failures: Map<string, TrialFailure>;
  observeBuild: ObserveBuild;
}

type Memory = Pick<ImageParts, 'known' | 'failures' | 'observeBuild'>;

/** What is looked up or tried once, for people too. */
interface Attempted {
  key: string;
  what: string;
  /** The image that cases name, if that is looked up. */
  image?: string | undefined;
}

/** Looks something up, or tries it, once for a batch. What failed is not tried again: {@link noteFailure}. */
export async function onceForBatch<Found>(
  memory: Memory,
  attempted: Attempted,
  look: () => Promise<Found>,
): Promise<Found> {
  const { known, failures } = memory;
  const { key } = attempted;
  const failure = failures.get(key);
  if (failure) throw failure;
  if (known.has(key)) return known.get(key) as Found;
  try {
    const found = await look();
    known.set(key, found);
    return found;
  } catch (error) {
    noteFailure(memory, attempted, error);
    throw error;
  }
}

/**
 * Keeps a failure that the case is to blame for, and reports it once. A registry that did not answer may do
 * so later. A build reports its own failure, but not that its image is missing.
 */
export function noteFailure(
  { failures, observeBuild }: Memory,
  { key: id, what, image }: Attempted,
  error: unknown,
): void {
  if (!(error instanceof TrialFailure)) return;
  const { failure: cause } = error;
  if (cause.kind === 'task') failures.set(id, error);
  const reported = `reported ${id}`;
  if ((cause.phase === 'build' && image === undefined) || failures.has(reported)) return;
  failures.set(reported, error);
  observeBuild({ id, what, image, state: { kind: 'failed', cause } });
}

export interface PreparationOptions {
  /** Called before a step that must be built. The step runs while the resolved permit is held. */
  building?: (() => Promise<Disposable>) | undefined;
}

/** What is needed to build the images of one trial. */
export interface ImageWork extends ImageParts, PreparationOptions {
  /** The variables that the host passes into its sandboxes, among them those of proxies. */
  passed: Readonly<Record<string, string>>;
  signal: AbortSignal;
}

/** A step of an environment that trials share. */
interface SharedStep extends Pick<EnvironmentStep, 'phase' | 'description'> {
  /** All that the result depends on. */
  key: string;
  /** The same with the image that it begins with. Default: the key. */
  inputs?: string;
}

interface StepHooks extends Pick<SharedStep, 'description' | 'key'> {
  /** To call before this process waits for another agent that builds the step. */
  waits(): void;
  /** Builds the step with a permit, and keeps what the build printed. */
  run(work: () => Promise<Prepared | undefined>): Promise<void>;
}

/**
 * Makes a step of an environment that trials share, once for a batch, and reports its progress. A step that
 * failed is not built again. Resolves with what results say about it.
 */
export async function sharedStep<Made>(
  { known, failures, buildLogs, observeBuild, building }: ImageWork,
  { phase, description, key, inputs = key }: SharedStep,
  make: (hooks: StepHooks) => Promise<Made>,
): Promise<{ made: Made; step: EnvironmentStep; hash: string }> {
  const hash = createHash('sha256').update(inputs).digest('hex');
  const madeAs = (made: Made) => ({ made, step: { phase, description, ...buildLogs?.of(hash) }, hash });
  if (known.has(hash)) return madeAs(known.get(hash) as Made);
  const failure = failures.get(hash);
  if (failure) throw failure;
  let isBuilt = false;
  const report = (state: BuildState) => {
    isBuilt = true;
    observeBuild({ id: hash, what: description, state });
  };
  try {
    const made = await make({
      key,
      description,
      waits: () => report({ kind: 'other-agent' }),
      async run(work) {
        if (building) report({ kind: 'queued' });
        using _permit = await building?.();
        report({ kind: 'running' });
        const ran = await work();
        // The log is stored before another process can use the result.
        if (ran) await buildLogs?.add(hash, ran);
      },
    });
    if (isBuilt) report({ kind: 'built' });
    known.set(hash, made);
    return madeAs(made);
  } catch (error) {
    const isFinal = error instanceof TrialFailure;
    if (isFinal) failures.set(hash, error);
    if (isBuilt) report(isFinal ? { kind: 'failed', cause: error.failure } : { kind: 'stopped' });
    throw error;
  }
}

interface Owner {
  uid: number;
  gid: number;
}

/** How to prepare a sandbox: files, and a script that may use the network. */
export interface Preparation {
  phase: 'install' | 'prepare';
  files: { path: string; content: Buffer | string; mode?: number }[];
  /** What the case puts into the sandbox, for its user. Relative paths are in the workspace. */
  placed?: readonly PlacedFile[] | undefined;
  /** A repository that is put into the workspace before `placed`. */
  source?: Pick<SourceToPut, 'planned' | 'env'> | undefined;
  script: string | undefined;
  variables: Variables;
  /** The user that runs everything, if it is not root by default. */
  user: string | undefined;
  /** Folders that the user must be able to write to, besides the workspace and Offsite's own. */
  ownFolders?: readonly string[];
  timeoutMs: number;
  /** The host's extra certificates, in PEM. */
  extraCertificates: Buffer | undefined;
}

/** A script that prepared a sandbox, and what it printed. */
export interface Prepared {
  /** Epoch milliseconds. */
  startedAt: number;
  durationMs: number;
  output: string;
}

/**
 * Prepares a started container. Resolves with undefined if there was no script to run. Throws a
 * {@link TrialFailure} of kind `task` if the script fails.
 */
export async function prepareContainer(
  container: Container,
  preparation: Preparation,
  signal: AbortSignal,
): Promise<Prepared | undefined> {
  const { user, ownFolders = [], placed = [], source } = preparation;
  const owner = user === undefined ? {} : await giveFolders(container, ownFolders, signal);
  if (source) await putSource(container, { ...source, owner }, signal);
  if (placed.length > 0) {
    const { workingDir } = container;
    const entries = placed.map((file) => ({ ...file, path: posix.resolve(workingDir, file.path), ...owner }));
    await container.put(entries, '/', signal);
  }
  return run(container, preparation, signal);
}

/**
 * Makes the sandbox's user the owner of those of the trial's folders that it cannot write to. The engine
 * creates them for root, which a strict sandbox does not have. Resolves with the user.
 */
async function giveFolders(
  container: Container,
  further: readonly string[],
  signal: AbortSignal,
): Promise<Owner> {
  const result = await container.exec({
    argv: ['/bin/sh', '-c', ownAndUnwritable, 'sh', container.workingDir, sandboxPaths.own, ...further],
    timeoutMs: commandOutput.time.userNames,
    signal,
  });
  const [uid, gid, ...unwritable] = result.stdout.text.trimEnd().split('\n');
  const owner = { uid: Number(uid), gid: Number(gid) };
  await container.put(
    unwritable.map((path) => ({ path, folder: true as const, ...owner })),
    '/',
    signal,
  );
  return owner;
}

const ownAndUnwritable = `
id -u && id -g
for folder; do [ -w "$folder" ] || echo "$folder"; done`;

async function run(
  container: Container,
  { phase, files, script, variables, timeoutMs, extraCertificates }: Preparation,
  signal: AbortSignal,
): Promise<Prepared | undefined> {
  if (script === undefined) {
    await container.put(files, '/', signal);
    return undefined;
  }
  const trust = extraCertificates && [{ path: sandboxPaths.extraCertificates, content: extraCertificates }];
  const scriptFile = { path: sandboxPaths.prepare, content: script, mode: 0o755 };
  await container.put([...files, scriptFile, ...(trust ?? [])], '/', signal);
  const start = script.startsWith('#!') ? sandboxPaths.prepare : `bash ${sandboxPaths.prepare}`;
  const result = await container.exec({
    argv: [
      'sh',
      '-c',
      [
        trust &&
          `cat /etc/ssl/certs/ca-certificates.crt ${sandboxPaths.extraCertificates} ` +
            `> ${sandboxPaths.certificates} 2>/dev/null`,
        `${start} 2>&1 </dev/null`,
        'code=$?',
        `rm -f ${sandboxPaths.prepare}`,
        'exit $code',
      ]
        .filter(Boolean)
        .join('\n'),
    ],
    cwd: container.workingDir,
    env: preparationEnvironment(variables, container, extraCertificates !== undefined),
    timeoutMs,
    signal,
  });
  const output = result.stdout.text;
  if (result.ended === 'exited' && result.exitCode === 0) {
    const { startedAt, finishedAt } = result;
    return { startedAt, durationMs: finishedAt - startedAt, output };
  }
  signal.throwIfAborted();
  const memory = result.oomKilled ? ' after it ran out of memory' : '';
  const how = howItEnded(result, timeoutMs);
  throw taskFailure(phase, `${phase} ${how}${memory}${unreachableText(output)}`, output);
}

interface SourceToPut {
  planned: PlannedSource;
  /** The sandbox's user; none for root. Git refuses a repository that belongs to somebody else. */
  owner: { uid?: number; gid?: number };
  /** The host's environment, in which git is found. */
  env: NodeJS.ProcessEnv;
}

/**
 * Puts the commit of a source into the workspace. Throws a {@link TrialFailure} if it is no longer in the
 * data folder.
 */
async function putSource(
  container: Container,
  { planned, owner, env }: SourceToPut,
  signal: AbortSignal,
): Promise<void> {
  const { workingDir } = container;
  async function* entries(): AsyncGenerator<NewEntry> {
    yield { path: workingDir, folder: true, ...owner };
    for await (const entry of sourceEntries(planned, env, signal))
      yield { ...entry, path: posix.join(workingDir, entry.path), ...owner };
  }
  try {
    await container.put(entries(), '/', signal);
  } catch (error) {
    if (!(error instanceof OffsiteError) || error.code !== 'GIT_FAILED') throw error;
    throw new TrialFailure({ kind: 'infrastructure', phase: 'prepare', message: error.message });
  }
}

/** How npm, pip, uv, apt, curl, git, Go and Cargo say that they could not reach a host. */
const patterns: readonly RegExp[] = [
  /request to https?:\/\/([^\s/]+)\S* failed/,
  /getaddrinfo (?:ENOTFOUND|EAI_AGAIN) (\S+)/,
  /connect (?:ECONNREFUSED|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH) (\S+)/,
  /HTTPS?ConnectionPool\(host='([^']+)'/,
  /(?:Failed to fetch|error sending request for url)[: (`]+https?:\/\/([^\s/)]+)/,
  /Could not resolve (?:host: )?'?([^\s']+)/,
  /Could not connect to (\S+)/,
  /Failed to connect to (\S+)/,
  /unable to access 'https?:\/\/([^/']+)/,
  /dial tcp: lookup (\S+)/,
];

/** The host that a script could not reach, by what it printed. Undefined if it names none. */
export function unreachableHost(output: string): string | undefined {
  for (const line of output.split('\n')) {
    const read = line.slice(0, printedText.bytes.line);
    for (const pattern of patterns) {
      const host = pattern.exec(read)?.[1]?.replace(/[:;,.)]+$/, '');
      if (host) return host;
    }
  }
  return undefined;
}

/** A text that names such a host and says what to do. Empty if the output names none. */
export function unreachableText(output: string): string {
  const host = unreachableHost(output);
  if (host === undefined) return '';
  return (
    `; it could not reach ${host}: check the network, or name a proxy or a mirror with variables of this ` +
    'machine that the sandbox may see, such as passEnv: [HTTPS_PROXY, NPM_CONFIG_REGISTRY, PIP_INDEX_URL]'
  );
}
