import { suiteFiles } from '../bounds/suite.ts';
import { assertEnforceable } from '../engine/capabilities.ts';
import type { ContainerSpec } from '../engine/container/container-spec.ts';
import type { Container } from '../engine/container.ts';
import type { Engine } from '../engine/engine.ts';
import type { Image } from '../engine/port/images.ts';
import { messageOf, OffsiteError } from '../offsite-error.ts';
import type { UsedImage } from '../record/trial-record.ts';
import { workdirObstacle } from '../suite/environment.ts';
import type { Sandbox } from '../suite/plan.ts';
import { baseImage } from './base-image.ts';
import { containerSpec, type Place, usualPlace } from './container-spec.ts';
import { baseEnvironment } from './environment.ts';
import { TrialFailure } from './failure.ts';
import { blameFor, noImage, obtainImage, type PullParts, usedImage } from './obtain-image.ts';
import type { TrialSpec } from './spec.ts';

/** The image that a trial's environment begins with, and how commands run in it. */
export interface StartImage extends Place {
  id: string;
  /** What results say about it. */
  used: UsedImage;
  /** Variables that decide what programs run or load, and name a folder in the workspace. */
  openVariables: string[];
  /** What a validator gets in place of these variables. */
  closedEnv: Record<string, string>;
  /** Whether a validator that is a module can run in it. */
  hasNode: boolean;
  /** Whether its containers keep folders outside of their layer, where no snapshot has them. */
  hasVolumes: boolean;
}

export type StartSpec = Pick<TrialSpec, 'sandbox' | 'environment'>;

/**
 * Finds the image of a trial's sandbox, or pulls it. Throws `IMAGE_MISSING` for an image of the configuration,
 * and a {@link TrialFailure} if an image that the case names is missing or cannot be used.
 *
 * @param built the image's id if it was built
 */
export async function startImage(
  parts: PullParts,
  spec: StartSpec,
  built: string | undefined,
  signal: AbortSignal,
): Promise<StartImage> {
  const { engine } = parts;
  const { sandbox, environment } = spec;
  const { place } = environment.image ?? environment.build ?? {};
  if (place === undefined) {
    const image = await baseImage(parts, sandbox, signal);
    const start = startOf(image, { sandbox, environment });
    if (Object.keys(environment.resources).length > 0) requireResources(engine, image, sandbox, start, '');
    return start;
  }
  const found =
    built === undefined ? await named(parts, spec, place, signal) : await ofBuild(engine, built, signal);
  const start = startOf(found, { sandbox, environment });
  const obstacle = workdirObstacle(start.workspace);
  if (obstacle !== undefined) {
    const why = `cannot be the workspace: ${obstacle}`;
    throw unusable(`${place}: the working folder ${start.workspace} ${why}. Set workdir.`);
  }
  const container = requireResources(engine, found, sandbox, start, `${place}: `);
  const has = await contentsOf(engine, container, found, signal);
  const lacking = (what: string) => unusable(`${place}: the image ${sandbox.image} has no ${what}`);
  if (!has.shell) throw lacking('/bin/sh, with which Offsite starts everything');
  if (!has.user) throw lacking(`user ${container.user}: create it, or set another user`);
  if (!has.bash) throw lacking('bash, which runs prepare, harness and verify: install it in the image');
  return { ...start, hasNode: has.node };
}

async function named(
  parts: PullParts,
  { sandbox, environment }: StartSpec,
  place: string,
  signal: AbortSignal,
): Promise<Image> {
  const obtained = await obtainImage(parts, sandbox.image, signal);
  if (obtained.kind === 'found') return obtained.image;
  const message = `${place}: ${noImage(obtained, environment.image?.name ?? '', sandbox.image)}`;
  throw new TrialFailure({ kind: blameFor(obtained), phase: 'sandbox', message });
}

async function ofBuild(engine: Engine, id: string, signal: AbortSignal): Promise<Image> {
  const found = await engine.findImage(id, signal);
  if (found) return found;
  throw imageGone(id);
}

/** The container to start. Throws if the engine cannot give it what the case asks for. */
function requireResources(
  { capabilities }: Engine,
  { id: imageId }: Image,
  sandbox: Sandbox,
  start: StartImage,
  place: string,
): ContainerSpec {
  const spec = { ...containerSpec(sandbox, start, { network: 'none', labels: {} }), imageId };
  try {
    assertEnforceable(spec, capabilities);
    return spec;
  } catch (error) {
    throw unusable(`${place}${messageOf(error)}`);
  }
}

/** What an image says about the commands in it. */
export function startOf(image: Image, { sandbox, environment }: StartSpec): StartImage {
  const isOwn = environment.image !== undefined || environment.build !== undefined;
  const own = isOwn && image.workingDir !== '/' ? image.workingDir : '';
  const workspace = environment.workdir ?? (own || usualPlace.workspace);
  const home = homeOf(image, { sandbox, environment });
  const closed = Object.entries({ ...image.env, ...environment.env, ...home }).flatMap(([name, value]) => {
    const without = name === 'PATH' ? pathOutside(value, workspace) : '';
    const isOpen = name === 'PATH' ? without !== value : pathsIn(value, workspace).length > 0;
    return isOpen && loading.test(name) ? [[name, without] as const] : [];
  });
  return {
    id: image.id,
    used: usedImage(sandbox.image, image),
    workspace,
    openVariables: closed.map(([name]) => name),
    closedEnv: Object.fromEntries(closed),
    user: sandbox.user ?? (image.user === '' ? undefined : image.user),
    env: { ...baseEnvironment(image), ...home },
    hasNode: true,
    hasVolumes: image.volumes.length > 0,
  };
}

/** Variables that decide what programs run or load. */
const loading =
  /^(PATH|HOME|ENV|BASH_ENV|LD_.*|NODE_(OPTIONS|PATH)|PYTHON.*|PERL.*|RUBY(LIB|OPT)|GIT_.*|CLASSPATH|JAVA_TOOL_OPTIONS)$/;

/** The parts of a variable, separated as in PATH or in options, that are in a folder. */
function pathsIn(value: string, folder: string): string[] {
  return value.split(/[:;,=\s]/).filter((part) => part === folder || part.startsWith(`${folder}/`));
}

/** A PATH without folders in the workspace. Relative ones are: commands start there. */
function pathOutside(path: string, workspace: string): string {
  const isOutside = (part: string) => part.startsWith('/') && pathsIn(part, workspace).length === 0;
  return path.split(':').filter(isOutside).join(':');
}

/** Without this variable the engine gives the home that the image's user has in /etc/passwd. */
function homeOf({ user }: Image, { sandbox, environment }: StartSpec): { HOME?: string } {
  if (environment.user !== undefined) return {};
  if (sandbox.user !== undefined) return { HOME: '/tmp' };
  return user === '' ? { HOME: '/root' } : {};
}

/** Throws a {@link TrialFailure} of kind `task` if the validator of a trial cannot run in its image. */
export function requireNode({ validator, environment }: TrialSpec, { hasNode }: StartImage): void {
  if (hasNode || !validator || validator.source.startsWith('#!')) return;
  const { place = '' } = environment.image ?? environment.build ?? {};
  throw unusable(`${place}: the image has no node, which runs the validator: install it in the image`);
}

interface ImageContents {
  /** Whether it has the user that commands run as. */
  user: boolean;
  shell: boolean;
  bash: boolean;
  node: boolean;
}

/** What an image has of what trials need. Looks at its files and starts nothing. Some round trips. */
async function contentsOf(
  engine: Engine,
  spec: ContainerSpec,
  { env }: Image,
  signal: AbortSignal,
): Promise<ImageContents> {
  await using container = await engine.createContainer(spec, signal);
  const isThere = async (path: string) => (await container.kindOf(path, signal)) === 'other';
  const folders = new Set(
    baseEnvironment({ env })
      .PATH?.split(':')
      .filter((one) => one.startsWith('/')),
  );
  const isOnPath = async (name: string) => {
    for (const folder of folders) if (await isThere(`${folder}/${name}`)) return true;
    return false;
  };
  const [user = ''] = spec.user?.split(':') ?? [];
  return {
    user: /^\d*$/.test(user) || (await hasUser(container, user, signal)),
    shell: await isThere('/bin/sh'),
    bash: await isOnPath('bash'),
    node: await isOnPath('node'),
  };
}

/** Whether `/etc/passwd` has a user of this name. Only the engine can tell if it is no regular file. */
async function hasUser(container: Container, name: string, signal: AbortSignal): Promise<boolean> {
  const path = '/etc/passwd';
  if ((await container.kindOf(path, signal)) !== 'other') return false;
  const pieces: Buffer[] = [];
  for await (const { type, content } of container.archive(path, signal, suiteFiles.bytes.file)) {
    if (type !== 'file') return true;
    for await (const piece of content()) pieces.push(Buffer.from(piece));
  }
  const lines = Buffer.concat(pieces).toString('utf8').split('\n');
  return lines.some((line) => line.startsWith(`${name}:`));
}

/** The caller makes it again. */
function imageGone(id: string): OffsiteError {
  return new OffsiteError(`the image ${id} was removed meanwhile`, {
    code: 'ENGINE_NOT_FOUND',
    kind: 'infrastructure',
  });
}

function unusable(message: string): TrialFailure {
  return new TrialFailure({ kind: 'task', phase: 'sandbox', message });
}
