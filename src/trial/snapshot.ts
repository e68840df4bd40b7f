import type { Container } from '../engine/container.ts';
import type { Engine } from '../engine/engine.ts';
import type { ExecResult } from '../engine/exec/exec-request.ts';
import { baseImage } from './base-image.ts';
import { containerSpec } from './container-spec.ts';
import { preparationEnvironment } from './environment.ts';
import { TrialFailure } from './failure.ts';
import { places } from './places.ts';
import type { TrialSpec } from './spec.ts';

/**
 * The image that a trial's sandbox starts from: the sandbox's image, then the profile's install, then the case's prepare, each step
 * committed once under the hash of all that went into it. Throws a {@link TrialFailure} of kind `task` where a script fails, and
 * `IMAGE_MISSING`.
 */
export async function preparedImage(
  engine: Engine,
  spec: TrialSpec,
  extraCertificates: Buffer | undefined,
  signal: AbortSignal,
): Promise<string> {
  const base = await baseImage(engine, spec.sandbox, signal);
  const installed = await snapshot(engine, base.id, installSteps(spec), extraCertificates, spec, signal);
  return snapshot(engine, installed, prepareSteps(spec), extraCertificates, spec, signal);
}

interface Steps {
  phase: 'install' | 'prepare';
  files: { path: string; content: Buffer | string }[];
  script: string | undefined;
  variables: TrialSpec['variables'];
  timeoutMs: number;
}

function installSteps({ profile, sandbox }: TrialSpec): Steps {
  return {
    phase: 'install',
    files: profile.files,
    script: profile.install,
    variables: {},
    timeoutMs: sandbox.timeouts.install,
  };
}

function prepareSteps({ prompt, prepare, variables, sandbox }: TrialSpec): Steps {
  return {
    phase: 'prepare',
    files: [{ path: places.prompt, content: prompt }],
    script: prepare,
    variables,
    timeoutMs: sandbox.timeouts.prepare,
  };
}

async function snapshot(
  engine: Engine,
  parent: string,
  steps: Steps,
  extraCertificates: Buffer | undefined,
  spec: TrialSpec,
  signal: AbortSignal,
): Promise<string> {
  const { phase, files, script, variables } = steps;
  if (phase === 'install' && files.length === 0 && script === undefined) return parent;
  const { sandbox } = spec;
  const contents = files.map(({ path, content }) => [path, Buffer.from(content).toString('base64')]);
  const result = await engine.snapshot(
    {
      parentImageId: parent,
      container: containerSpec(sandbox, { network: 'open', labels: { 'offsite.batch': spec.batchId } }),
      key: JSON.stringify({
        phase,
        files: contents,
        script,
        variables,
        security: sandbox.security,
        user: sandbox.user,
        certificates: script === undefined ? undefined : extraCertificates?.toString('latin1'),
      }),
      build: async (container) => {
        if (sandbox.user !== undefined) await giveFolders(container, signal);
        await build(container, steps, extraCertificates, signal);
      },
    },
    signal,
  );
  if (result.kind === 'snapshot') return result.imageId;
  throw new TrialFailure({
    kind: 'task',
    phase,
    message: `${phase} left processes running, which a snapshot cannot keep: ${result.processes.join(', ')}; let the script stop them`,
  });
}

/** Makes the folders of a trial the sandbox's user's: the engine makes them root's, whom a strict sandbox does not have. */
async function giveFolders(container: Container, signal: AbortSignal): Promise<void> {
  const result = await container.exec({ argv: ['sh', '-c', 'id -u; id -g'], timeoutMs: 60_000, signal });
  const [uid = 0, gid = 0] = result.stdout.text.split('\n').map(Number);
  const folders = [places.workspace, places.own].map((path) => ({ path, folder: true as const, uid, gid }));
  await container.put(folders, '/', signal);
}

async function build(
  container: Container,
  { phase, files, script, variables, timeoutMs }: Steps,
  extraCertificates: Buffer | undefined,
  signal: AbortSignal,
): Promise<void> {
  if (script === undefined) return container.put(files, '/', signal);
  const trust = extraCertificates && [{ path: places.extraCertificates, content: extraCertificates }];
  const scriptFile = { path: places.prepare, content: script, mode: 0o755 };
  await container.put([...files, scriptFile, ...(trust ?? [])], '/', signal);
  const start = script.startsWith('#!') ? places.prepare : `bash ${places.prepare}`;
  const result = await container.exec({
    argv: [
      'sh',
      '-c',
      [
        trust &&
          `cat /etc/ssl/certs/ca-certificates.crt ${places.extraCertificates} > ${places.certificates} 2>/dev/null`,
        `${start} 2>&1 </dev/null`,
        'code=$?',
        `rm -f ${places.prepare}`,
        'exit $code',
      ]
        .filter(Boolean)
        .join('\n'),
    ],
    cwd: places.workspace,
    env: preparationEnvironment(variables, extraCertificates !== undefined),
    timeoutMs,
    signal,
  });
  const output = result.stdout.text;
  if (result.ended === 'exited' && result.exitCode === 0) return;
  signal.throwIfAborted();
  throw new TrialFailure({
    kind: 'task',
    phase,
    message: `${phase} ${howItEnded(result, timeoutMs)}${result.oomKilled ? ' after it ran out of memory' : ''}`,
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
      return 'was stopped for writing more than the sandbox may';
    case 'not-started':
      return `could not be started: ${result.message}`;
  }
}
