import { createHash } from 'node:crypto';
import { canonicalJson } from '../../base/canonical-json.ts';
import { OffsiteError } from '../../base/offsite-error.ts';
import type { Container } from '../../engine/container.ts';
import type { Mount } from '../../engine/port/containers.ts';
import type { SnapshotResult } from '../../engine/snapshot.ts';
import { harnessFolder } from '../../harness/npm-cli.ts';
import type { EnvironmentStep, UsedImage } from '../../record/environment.ts';
import { TrialFailure, taskFailure } from '../blame.ts';
import { builtImage } from '../prepare/built-image.ts';
import { containerSpec, defaultContext, sandboxPaths } from '../prepare/environment.ts';
import { installedHarness, requireRunnable, validatorNode } from '../prepare/harness-volume.ts';
import {
  type ImageParts,
  type ImageWork,
  onceForBatch,
  type Preparation,
  prepareContainer,
  sharedStep,
} from '../prepare/image-parts.ts';
import { isEmptied, type StartImage, startImage } from '../prepare/start-image.ts';
import type { TrialSpec } from '../spec.ts';

interface PreparedImage {
  imageId: string;
  /** The image that it was made from. */
  start: StartImage;
  /** The images that it is based on: the named image, or those that the Dockerfile names. */
  images: UsedImage[];
  /** The harness, for the sandbox that it runs in. Undefined if it needs no install. */
  mount: Mount | undefined;
  /** The Node of the validator, for the sandbox that it runs in. Undefined if the image has it, or none. */
  node: Mount | undefined;
  /**
   * Prepares the trial's container, which needs the network for it. Set if no image can keep what prepare
   * makes: processes, or files in volumes of the image. Undefined if the image is already prepared.
   */
  prepare: ((container: Container) => Promise<EnvironmentStep[]>) | undefined;
  /** Whether `prepare` runs a script, and does not only put files into the container. */
  preparesWithScript: boolean;
  /** The steps that made the image, in order. */
  steps: EnvironmentStep[];
}

/**
 * The image that a trial's sandbox starts from: the sandbox's image, then the profile's install, and the
 * case's prepare. Each step is committed once, under the hash of all its inputs. The harness is installed
 * beside the image, so the steps are shared by all harnesses. Throws a {@link TrialFailure} of kind `task` if
 * a script fails, and `IMAGE_MISSING`.
 */
export async function preparedImage(work: ImageWork, spec: TrialSpec): Promise<PreparedImage> {
  const built = await builtImage(work, spec);
  const start = await knownStart(work, spec, built?.step.image);
  const node = await validatorNode(work, spec, start);
  const harness = await installedHarness(work, spec);
  if (harness) await requireRunnable(work, spec, start, harness);
  let imageId = start.id;
  const steps: EnvironmentStep[] = [...[built, harness, node].flatMap((one) => one?.step ?? [])];
  const images = built?.bases ?? [start.used];
  const made = { start, images, mount: harness?.mount, node: node?.mount, steps };
  for (const script of scriptsOf(spec, start, made.mount, work)) {
    const { phase, description } = script;
    const { hash, made: result, step } = await snapshot(work, imageId, script, start, spec);
    if (result.kind === 'snapshot') {
      imageId = result.imageId;
      steps.push({ ...step, image: imageId });
      continue;
    }
    if (phase === 'install') throw leftRunning(result.processes);
    const prepare = async (container: Container) => {
      const ran = await prepareContainer(container, script, work.signal);
      return [{ phase, description, ...(ran && (await work.buildLogs?.add(hash, ran))) }];
    };
    return { ...made, imageId, prepare, preparesWithScript: script.script !== undefined };
  }
  return { ...made, imageId, prepare: undefined, preparesWithScript: false };
}

/** The image with what a script makes. What prepare writes into a volume of the image cannot be kept. */
function snapshot(
  work: ImageWork,
  parentImageId: string,
  script: EnvironmentScript,
  start: StartImage,
  { sandbox, batchId }: TrialSpec,
) {
  const { engine, passed, signal } = work;
  const { phase, description, mount } = script;
  const labels = { 'offsite.batch': batchId };
  const env = { ...passed, ...script.env };
  const key = keyOf(script, start.workspace, sandbox.security, env);
  const shared = { phase, description, key, inputs: `${parentImageId} ${key}` };
  return sharedStep(work, shared, async ({ run, ...request }): Promise<SnapshotResult> => {
    if (phase === 'prepare' && start.hasVolumes) return { kind: 'not-snapshotable', processes: [] };
    const made = containerSpec(sandbox, start, { network: 'open', labels }, env);
    const container = { ...made, ...(mount && { mounts: [mount] }) };
    const build = (made: Container) => run(() => prepareContainer(made, script, signal));
    const kept = engine.snapshot({ ...request, parentImageId, container, build }, signal);
    return await kept.catch((error: unknown) => {
      if (!(error instanceof OffsiteError && error.code === 'IMAGE_TOO_LARGE')) throw error;
      const message = `what ${phase} made cannot be kept: ${error.message}`;
      throw new TrialFailure({ kind: 'task', phase, message }, error);
    });
  });
}

function leftRunning(processes: readonly string[]): TrialFailure {
  const left = `install left processes running, which a snapshot cannot keep: ${processes.join(', ')}`;
  return taskFailure('install', `${left}; start them in prepare`);
}

/** The image that the environment begins with. Each is looked up once, and fails once. */
function knownStart(work: ImageWork, spec: TrialSpec, built: string | undefined): Promise<StartImage> {
  const { image, user, cpus, memory } = spec.sandbox;
  const { workdir, image: named } = spec.environment;
  const key = JSON.stringify([built ?? image, user, cpus, memory, workdir, named?.name, isEmptied(spec)]);
  const missing = built === undefined ? named?.name : undefined;
  const what = missing === undefined ? `image of ${spec.caseName}` : `image ${missing}`;
  return onceForBatch(work, { key, what, image: missing }, () => startImage(work, spec, built, work.signal));
}

/** A script or files that are put into an environment and committed once. */
interface EnvironmentScript extends Preparation {
  description: string;
  /** The variables of the case's environment, if the script belongs to the case. */
  env: Readonly<Record<string, string>>;
  /** The harness, if the script names its folder. */
  mount: Mount | undefined;
}

/** What is run in the start image, in order: the install of the profile, and the prepare of the case. */
function scriptsOf(
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
function keyOf(
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
