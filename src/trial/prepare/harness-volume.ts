import { infrastructureError } from '../../base/offsite-error.ts';
import type { ContainerSpec } from '../../engine/container/container-spec.ts';
import type { Container } from '../../engine/container.ts';
import { type ExecResult, isSuccess } from '../../engine/exec/exec-request.ts';
import type { Mount } from '../../engine/port/containers.ts';
import type { Capabilities } from '../../engine/port/engine-port.ts';
import type { Image } from '../../engine/port/images.ts';
import { harnessFolder, harnessNode } from '../../harness/npm-cli.ts';
import type { EnvironmentStep } from '../../record/environment.ts';
import type { Sandbox } from '../../suite/plan.ts';
import { TrialFailure, taskFailure } from '../blame.ts';
import { baseEnvironment, containerSpec, defaultContext, sandboxPaths } from '../prepare/environment.ts';
import { relayImage } from '../prepare/model-port.ts';
import { obtainImage, whyMissing } from '../prepare/obtain-image.ts';
import type { StartImage } from '../prepare/start-image.ts';
import type { TrialSpec } from '../spec.ts';
import {
  type ImageWork,
  onceForBatch,
  type Preparation,
  prepareContainer,
  sharedStep,
} from './image-parts.ts';

/** Programs that are installed beside the images that they run in. */
interface InstalledVolume {
  /** For the sandboxes that they run in. */
  mount: Mount;
  /** The image that they were installed in. */
  imageId: string;
  step: EnvironmentStep;
}

/** What to install into a volume. */
interface VolumeInstall {
  description: string;
  script: string;
  /** Absolute; the only folder that the script need write to. */
  path: string;
}

/** An install of a CLI does not depend on the limits of the sandbox that the CLI runs in later. */
const installLimits = { memoryBytes: 2 * 1024 ** 3, cpus: 2, pids: 512, diskBytes: 10 * 1024 ** 3 };

/** A user that no image has, and that can write only to folders that it is given. */
const strictUser = '65532:65532';

/**
 * Installs a trial's harness into a volume, once on this engine for all images. Undefined if the harness
 * needs no install. Throws a `TrialFailure` of kind `task` if the install fails, and `IMAGE_MISSING`.
 */
export async function installedHarness(
  work: ImageWork,
  spec: TrialSpec,
): Promise<InstalledVolume | undefined> {
  const { harness, profile } = spec;
  const script = work.runners.find(({ name }) => name === harness)?.install?.(profile);
  if (script === undefined) return undefined;
  return installed(work, spec, { description: `install of ${harness}`, script, path: harnessFolder });
}

/** Runs an install once on this engine for all images. Throws as {@link installedHarness} does. */
async function installed(
  work: ImageWork,
  { sandbox, batchId }: Pick<TrialSpec, 'sandbox' | 'batchId'>,
  { description, script, path }: VolumeInstall,
): Promise<InstalledVolume> {
  const { engine, extraCertificates, passed, signal } = work;
  const image = await installImage(work, sandbox);
  const { security } = sandbox;
  const user = security === 'strict' ? strictUser : undefined;
  const preparation: Preparation = {
    phase: 'install',
    files: [],
    script,
    variables: {},
    user,
    ownFolders: [path],
    timeoutMs: sandbox.timeouts.install,
    extraCertificates,
  };
  const certificates = extraCertificates?.toString('latin1');
  const key = JSON.stringify({ script, security, env: passed, certificates });
  const shared = { phase: 'install' as const, description, key, inputs: `volume ${image.id} ${key}` };
  const { made: volume, step } = await sharedStep(work, shared, async ({ run, ...request }) => {
    const container = installSpec(image, sandbox, engine.capabilities, { user, passed, batchId });
    const build = (made: Container) => run(() => prepareContainer(made, preparation, signal));
    const filled = { ...request, path, parentImageId: image.id, container, build };
    return (await engine.volume(filled, signal)).name;
  });
  return { mount: { volume, path, readOnly: true }, imageId: image.id, step: { ...step, volume } };
}

function installSpec(
  image: Pick<Image, 'env'>,
  { security, seccomp, runtime }: Sandbox,
  { memoryBytes, cpus }: Capabilities,
  given: { user: string | undefined; passed: Readonly<Record<string, string>>; batchId: string },
): Omit<ContainerSpec, 'imageId'> {
  const home = given.user === undefined ? '/root' : '/tmp';
  return {
    ...installLimits,
    memoryBytes: Math.min(installLimits.memoryBytes, memoryBytes),
    cpus: Math.min(installLimits.cpus, cpus),
    network: 'open',
    labels: { 'offsite.batch': given.batchId },
    security,
    filter: seccomp,
    workingDir: defaultContext.workspace,
    user: given.user,
    env: { ...given.passed, ...baseEnvironment(image), HOME: home },
    runtime,
  };
}

/**
 * The image that harnesses are installed in: one with npm, and a C library like that of the sandbox's image.
 */
function installImage(work: ImageWork, sandbox: Sandbox): Promise<Image> {
  const { name, harnessImage = relayImage } = sandbox;
  const what = `image ${harnessImage}`;
  return onceForBatch(work, { key: `install in ${harnessImage}`, what }, async () => {
    const obtained = await obtainImage(work, harnessImage, work.signal);
    if (obtained.kind === 'found') {
      if (harnessImage === relayImage) work.known.set(relayImage, obtained.image.id);
      return obtained.image;
    }
    throw infrastructureError(
      'IMAGE_MISSING',
      `the engine has no ${what}, in which the sandbox "${name}" installs harnesses${whyMissing(obtained)}`,
      {
        hint:
          harnessImage === relayImage
            ? 'Build it: offsite engine base-image'
            : `Pull it: docker pull ${harnessImage}`,
      },
    );
  });
}

/** Only a program that hangs takes this long. */
const startMs = 60_000;

/** What runs with a Node that is installed beside the images. */
interface InstalledProgram {
  /** In messages. */
  name: string;
  /** The absolute path of its Node. */
  node: string;
}

/**
 * Throws a {@link TrialFailure} of kind `task` if a program that is installed beside an image cannot run in
 * it. Starts its Node there, once for each image and program.
 *
 * @param program default: the harness
 */
export async function requireRunnable(
  work: ImageWork,
  spec: TrialSpec,
  start: StartImage,
  { imageId, mount }: InstalledVolume,
  { name, node }: InstalledProgram = { name: spec.harness, node: harnessNode },
): Promise<void> {
  if (start.id === imageId) return;
  const key = `${mount.volume} runs in ${start.id}`;
  await onceForBatch(work, { key, what: `${name} in the image of ${spec.caseName}` }, async () => {
    // An install without a Node of its own brings a program that needs none.
    const argv = ['sh', '-c', `[ ! -e ${node} ] || exec ${node} --version`];
    const result = await ranIn(work, spec, start, argv, [mount]);
    if (isSuccess(result)) return;
    const { place } = spec.environment.image ?? spec.environment.build ?? {};
    const where = place ?? `sandbox ${spec.sandbox.name}`;
    const { harnessImage = relayImage } = spec.sandbox;
    const message =
      `${where}: ${name} does not run in the image ${spec.sandbox.image}: ${obstacleOf(result)}. ` +
      `It is installed in ${harnessImage}; set harnessImage of the sandbox to an image with npm and the same ` +
      'C library, or use another image';
    throw taskFailure('sandbox', message);
  });
}

/** Runs a command in a container of the image, beside nothing else. */
async function ranIn(
  { engine, signal }: ImageWork,
  { sandbox, batchId }: TrialSpec,
  start: StartImage,
  argv: string[],
  mounts?: Mount[],
): Promise<ExecResult> {
  const labels = { 'offsite.batch': batchId };
  const made = containerSpec(sandbox, start, { network: 'none', labels });
  await using container = await engine.createContainer({ ...made, imageId: start.id, mounts }, signal);
  await container.start(signal);
  return await container.exec({ argv, timeoutMs: startMs, signal });
}

/** Why a Node did not start, from what the shell and the loader of libraries print. */
function obstacleOf(result: ExecResult): string {
  const printed = result.stderr.text.trim();
  const versions = [...printed.matchAll(/`?(GLIBC|GLIBCXX|CXXABI)_([\d.]+)'? not found/g)];
  const [, library, version] = versions.at(-1) ?? [];
  if (library === 'GLIBC') return `its C library is older than glibc ${version}`;
  if (library !== undefined) return `its libstdc++ is older than ${library} ${version}`;
  const [, missing] = /error while loading shared libraries: (\S+):/.exec(printed) ?? [];
  if (missing !== undefined) return `it has no ${missing}`;
  if (result.ended === 'exited' && (result.exitCode === 127 || result.exitCode === 126))
    return 'it has no glibc (images of Alpine have musl), or is for another kind of processor';
  return `its Node does not start there (${result.ended}): ${printed.slice(0, 200)}`;
}

/** What the Node of a validator must be able to do: it runs TypeScript as it is. */
const isEnough = 'process.exit(process.features.typescript ? 0 : 1)';

/** Copies the Node of the image that harnesses are installed in. */
const copyNode = `#!/bin/sh
set -eu
node=$(command -v node) || { echo 'this image has no node, which runs validators' >&2; exit 1; }
mkdir -p ${sandboxPaths.validatorNode}/bin
cp -L "$node" ${sandboxPaths.validatorNode}/bin/node
`;

/** The absolute path of the Node in the sandboxes that have this mount. */
export function nodeOf({ path }: Mount): string {
  return `${path}/bin/node`;
}

/**
 * The Node for a validator that is a module, if the image of the trial has no Node that runs TypeScript. It
 * is installed into a volume once on this engine. Throws a `TrialFailure` of kind `task` if it does not start
 * in the image.
 */
export async function validatorNode(
  work: ImageWork,
  spec: TrialSpec,
  start: StartImage,
): Promise<InstalledVolume | undefined> {
  const { validator, environment } = spec;
  const isModule = validator !== undefined && !validator.source.startsWith('#!');
  const hasOwnImage = environment.image !== undefined || environment.build !== undefined;
  if (!isModule || !hasOwnImage || (await runsModules(work, spec, start))) return undefined;
  const path = sandboxPaths.validatorNode;
  const install = { description: 'install of Node for validators', script: copyNode, path };
  const volume = await installed(work, spec, install);
  const program = { name: 'the Node of the validator', node: nodeOf(volume.mount) };
  await requireRunnable(work, spec, start, volume, program);
  return volume;
}

/** Whether an image has a Node that is new enough. Starts it, once for each image. */
async function runsModules(work: ImageWork, spec: TrialSpec, start: StartImage): Promise<boolean> {
  if (!start.hasNode) return false;
  const key = `validators run in ${start.id}`;
  return onceForBatch(work, { key, what: 'Node of validators' }, async () =>
    isSuccess(await ranIn(work, spec, start, ['node', '-e', isEnough])),
  );
}
