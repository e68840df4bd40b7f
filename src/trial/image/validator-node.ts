import { isSuccess } from '../../engine/exec/exec-request.ts';
import type { Mount } from '../../engine/port/containers.ts';
import { sandboxPaths } from '../sandbox-paths.ts';
import type { TrialSpec } from '../spec.ts';
import { type InstalledVolume, installedVolume } from './harness-volume.ts';
import type { ImageParts, PreparationOptions } from './image-parts.ts';
import { ranIn, requireRunnable } from './runnable-harness.ts';
import type { StartImage } from './start-image.ts';

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
 *
 * @param passed the variables that the host passes into the sandbox
 */
export async function validatorNode(
  parts: ImageParts,
  spec: TrialSpec,
  start: StartImage,
  passed: Readonly<Record<string, string>>,
  signal: AbortSignal,
  options: PreparationOptions,
): Promise<InstalledVolume | undefined> {
  const { validator, environment } = spec;
  const isModule = validator !== undefined && !validator.source.startsWith('#!');
  const hasOwnImage = environment.image !== undefined || environment.build !== undefined;
  if (!isModule || !hasOwnImage || (await runsModules(parts, spec, start, signal))) return undefined;
  const path = sandboxPaths.validatorNode;
  const install = { description: 'install of Node for validators', script: copyNode, path };
  const installed = await installedVolume(parts, spec, install, passed, signal, options);
  const program = { name: 'the Node of the validator', node: nodeOf(installed.mount) };
  await requireRunnable(parts, spec, start, installed, signal, program);
  return installed;
}

/** Whether an image has a Node that is new enough. Starts it, once for each image. */
async function runsModules(
  { engine, known }: ImageParts,
  spec: TrialSpec,
  start: StartImage,
  signal: AbortSignal,
): Promise<boolean> {
  if (!start.hasNode) return false;
  const key = `validators run in ${start.id}`;
  const runs =
    known.get(key) ??
    String(isSuccess(await ranIn(engine, spec, start, { argv: ['node', '-e', isEnough] }, signal)));
  known.set(key, runs);
  return runs === 'true';
}
