import { createHash } from 'node:crypto';
import { OffsiteError } from '../../base/offsite-error.ts';
import type { ContainerSpec } from '../../engine/container/container-spec.ts';
import type { Container } from '../../engine/container.ts';
import type { Mount } from '../../engine/port/containers.ts';
import type { Capabilities } from '../../engine/port/engine-port.ts';
import type { Image } from '../../engine/port/images.ts';
import { harnessFolder } from '../../harness/npm-cli.ts';
import type { EnvironmentStep } from '../../record/environment.ts';
import type { Sandbox } from '../../suite/plan.ts';
import { defaultContext } from '../container-spec.ts';
import { baseEnvironment } from '../environment.ts';
import { relayImage } from '../model-port.ts';
import type { TrialSpec } from '../spec.ts';
import type { ImageParts, PreparationOptions } from './image-parts.ts';
import { obtainImage, whyMissing } from './obtain-image.ts';
import { type Preparation, prepareContainer } from './preparation.ts';
import { sharedStep } from './shared-step.ts';

/** Programs that are installed beside the images that they run in. */
export interface InstalledVolume {
  /** For the sandboxes that they run in. */
  mount: Mount;
  /** The image that they were installed in. */
  imageId: string;
  step: EnvironmentStep;
}

/** What to install into a volume. */
export interface VolumeInstall {
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
 *
 * @param passed the variables that the host passes into the sandbox
 */
export async function installedHarness(
  parts: ImageParts,
  spec: TrialSpec,
  passed: Readonly<Record<string, string>>,
  signal: AbortSignal,
  options: PreparationOptions,
): Promise<InstalledVolume | undefined> {
  const { harness, profile } = spec;
  const script = parts.runners.find(({ name }) => name === harness)?.install?.(profile);
  if (script === undefined) return undefined;
  const install = { description: `install of ${harness}`, script, path: harnessFolder };
  return installedVolume(parts, spec, install, passed, signal, options);
}

/** Runs an install once on this engine for all images. Throws as {@link installedHarness} does. */
export async function installedVolume(
  parts: ImageParts,
  { sandbox, batchId }: Pick<TrialSpec, 'sandbox' | 'batchId'>,
  { description, script, path }: VolumeInstall,
  passed: Readonly<Record<string, string>>,
  signal: AbortSignal,
  { building }: PreparationOptions,
): Promise<InstalledVolume> {
  const { engine, known, extraCertificates, buildLogs } = parts;
  const image = await installImage(parts, sandbox, signal);
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
  const hash = createHash('sha256').update(`volume ${image.id} ${key}`).digest('hex');
  const installed = (volume: string): InstalledVolume => ({
    mount: { volume, path, readOnly: true },
    imageId: image.id,
    step: { phase: 'install', description, volume, ...buildLogs?.of(hash) },
  });
  const knownName = known.get(hash);
  if (knownName !== undefined) return installed(knownName);
  return sharedStep(parts, { hash, description, building }, async ({ waits, run }) => {
    const request = {
      key,
      description,
      waits,
      path,
      parentImageId: image.id,
      container: installSpec(image, sandbox, engine.capabilities, { user, passed, batchId }),
      build: (container: Container) => run(() => prepareContainer(container, preparation, signal)),
    };
    const { name } = await engine.volume(request, signal);
    known.set(hash, name);
    return installed(name);
  });
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
async function installImage(
  parts: ImageParts,
  { name: sandbox, harnessImage = relayImage }: Sandbox,
  signal: AbortSignal,
): Promise<Image> {
  const { known, images } = parts;
  const cached = images.get(known.get(harnessImage) ?? '');
  if (cached) return cached;
  const obtained = await obtainImage(parts, harnessImage, signal);
  if (obtained.kind === 'found') {
    const { image } = obtained;
    known.set(harnessImage, image.id);
    images.set(image.id, image);
    return image;
  }
  throw new OffsiteError(
    `the engine has no image ${harnessImage}, in which the sandbox "${sandbox}" installs harnesses${whyMissing(obtained)}`,
    {
      code: 'IMAGE_MISSING',
      kind: 'infrastructure',
      hint:
        harnessImage === relayImage
          ? 'Build it: offsite engine base-image'
          : `Pull it: docker pull ${harnessImage}`,
    },
  );
}
