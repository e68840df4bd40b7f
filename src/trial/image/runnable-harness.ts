import type { Engine } from '../../engine/engine.ts';
import { type ExecResult, isSuccess } from '../../engine/exec/exec-request.ts';
import type { Mount } from '../../engine/port/containers.ts';
import { harnessNode } from '../../harness/npm-cli.ts';
import { containerSpec } from '../container-spec.ts';
import { TrialFailure } from '../failure.ts';
import { relayImage } from '../model-port.ts';
import type { TrialSpec } from '../spec.ts';
import type { InstalledVolume } from './harness-volume.ts';
import type { ImageParts } from './image-parts.ts';
import type { StartImage } from './start-image.ts';

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
  { engine, known, failures, observeBuild }: ImageParts,
  spec: TrialSpec,
  start: StartImage,
  installed: InstalledVolume,
  signal: AbortSignal,
  program: InstalledProgram = { name: spec.harness, node: harnessNode },
): Promise<void> {
  if (start.id === installed.imageId) return;
  const key = `${installed.mount.volume} runs in ${start.id}`;
  const refuseKnown = () => {
    const failure = failures.get(key);
    if (failure) throw failure;
  };
  refuseKnown();
  if (known.has(key)) return;
  const { node } = program;
  // An install without a Node of its own brings a program that needs none.
  const argv = ['sh', '-c', `[ ! -e ${node} ] || exec ${node} --version`];
  const result = await ranIn(engine, spec, start, { argv, mounts: [installed.mount] }, signal);
  const obstacle = isSuccess(result) ? undefined : obstacleOf(result);
  known.set(key, '');
  if (obstacle === undefined) return;
  // Another trial may have told it meanwhile.
  refuseKnown();
  const { place } = spec.environment.image ?? spec.environment.build ?? {};
  const where = place ?? `sandbox ${spec.sandbox.name}`;
  const { harnessImage = relayImage } = spec.sandbox;
  const message =
    `${where}: ${program.name} does not run in the image ${spec.sandbox.image}: ${obstacle}. ` +
    `It is installed in ${harnessImage}; set harnessImage of the sandbox to an image with npm and the same ` +
    'C library, or use another image';
  const thrown = new TrialFailure({ kind: 'task', phase: 'sandbox', message });
  failures.set(key, thrown);
  const what = `${program.name} in the image of ${spec.caseName}`;
  observeBuild({ id: key, what, state: { kind: 'failed', cause: thrown.failure } });
  throw thrown;
}

/** Runs a command in a container of the image, beside nothing else. */
export async function ranIn(
  engine: Engine,
  { sandbox, batchId }: TrialSpec,
  start: StartImage,
  { argv, mounts }: { argv: string[]; mounts?: Mount[] },
  signal: AbortSignal,
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
