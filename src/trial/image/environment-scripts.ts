import { createHash } from 'node:crypto';
import { canonicalJson } from '../../base/canonical-json.ts';
import type { Mount } from '../../engine/port/containers.ts';
import { harnessFolder } from '../../harness/npm-cli.ts';
import { defaultContext } from '../container-spec.ts';
import { sandboxPaths } from '../sandbox-paths.ts';
import type { TrialSpec } from '../spec.ts';
import type { ImageParts } from './image-parts.ts';
import type { Preparation } from './preparation.ts';
import type { StartImage } from './start-image.ts';

/** A script or files that are put into an environment and committed once. */
export interface EnvironmentScript extends Preparation {
  description: string;
  /** The variables of the case's environment, if the script belongs to the case. */
  env: Readonly<Record<string, string>>;
  /** The harness, if the script names its folder. */
  mount: Mount | undefined;
}

/** What is run in the start image, in order: the install of the profile, and the prepare of the case. */
export function scriptsOf(
  spec: TrialSpec,
  start: StartImage,
  mount: Mount | undefined,
  { extraCertificates, env }: ImageParts,
): EnvironmentScript[] {
  const { profile, prompt, prepare, variables, sandbox, caseName } = spec;
  const { timeouts } = sandbox;
  const shared = { user: start.user, extraCertificates };
  // All other scripts give the same result with every harness.
  const mountFor = (script: string | undefined) => (script?.includes(harnessFolder) ? mount : undefined);
  const steps: EnvironmentScript[] = [
    {
      ...shared,
      phase: 'install',
      description: `install of profile ${profile.name ?? 'default'}`,
      files: profile.files,
      script: profile.install,
      variables: {},
      env: {},
      mount: mountFor(profile.install),
      timeoutMs: timeouts.install,
    },
    {
      ...shared,
      phase: 'prepare',
      description: `prepare of ${caseName}`,
      files: [{ path: sandboxPaths.prompt, content: prompt }],
      script: prepare,
      variables,
      env: spec.environment.env,
      placed: spec.environment.files,
      source: spec.environment.source && { planned: spec.environment.source, env },
      mount: mountFor(prepare),
      timeoutMs: timeouts.prepare,
    },
  ];
  return steps.filter(({ files, script }) => files.length > 0 || script !== undefined);
}

/**
 * All inputs of a step's result. The order of members does not matter: it is different in a plan from the
 * ledger.
 */
export function keyOf(
  { phase, files, placed, source, script, variables, user, extraCertificates, mount }: EnvironmentScript,
  workspace: string,
  security: string,
  env: Record<string, string>,
): string {
  return canonicalJson({
    phase,
    files: files.map(({ path, content, mode }) => [path, Buffer.from(content).toString('base64'), mode]),
    placed: placed?.map((file) => ('content' in file ? { ...file, content: sha256Of(file.content) } : file)),
    // The commit stands for all contents of the source, wherever it was fetched from.
    source: source && [source.planned.rebuilt ?? source.planned.commit, source.planned.history],
    script,
    variables,
    workspace: workspace === defaultContext.workspace ? undefined : workspace,
    security,
    user,
    harness: mount?.volume,
    env: script === undefined || Object.keys(env).length === 0 ? undefined : env,
    certificates: script === undefined ? undefined : extraCertificates?.toString('latin1'),
  });
}

function sha256Of(content: Buffer): string {
  return createHash('sha256').update(content).digest('hex');
}
