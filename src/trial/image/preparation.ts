import { posix } from 'node:path';
import { commandOutput } from '../../bounds/sandbox.ts';
import type { Container } from '../../engine/container.ts';
import type { ExecResult } from '../../engine/exec/exec-request.ts';
import type { PlacedFile } from '../../suite/environment.ts';
import type { Variables } from '../../suite/variables.ts';
import { preparationEnvironment } from '../environment.ts';
import { TrialFailure } from '../failure.ts';
import { sandboxPaths } from '../sandbox-paths.ts';
import { putSource, type SourceToPut } from './put-source.ts';
import { unreachableText } from './unreachable-host.ts';

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
  throw new TrialFailure({
    kind: 'task',
    phase,
    message: `${phase} ${howItEnded(result, timeoutMs)}${memory}${unreachableText(output)}`,
    output,
  });
}

function howItEnded(result: ExecResult, timeoutMs: number): string {
  switch (result.ended) {
    case 'exited':
      return `exited with ${result.exitCode}`;
    case 'timed-out':
      return `was stopped after ${timeoutMs / 1000} s`;
    case 'canceled':
      return 'was canceled';
    case 'out-of-disk':
      return 'was stopped because it wrote more than the sandbox allows';
    case 'not-started':
      return `could not be started: ${result.message}`;
  }
}
