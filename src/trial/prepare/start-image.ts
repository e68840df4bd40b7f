import { inputError, messageOf, OffsiteError, type OffsiteErrorOptions } from '../../base/offsite-error.ts';
import { baseImageRecipe, baseImageRecipes } from '../../base-image/recipe.ts';
import { suiteFiles } from '../../bounds/suite.ts';
import { assertEnforceable } from '../../engine/capabilities.ts';
import type { ContainerSpec } from '../../engine/container/container-spec.ts';
import type { Container } from '../../engine/container.ts';
import type { Engine } from '../../engine/engine.ts';
import type { Image } from '../../engine/port/images.ts';
import type { UsedImage } from '../../record/environment.ts';
import { workdirObstacle } from '../../suite/environment.ts';
import type { PlannedCase, Sandbox } from '../../suite/plan.ts';
import { missingLabel } from '../../suite/quantities.ts';
import { unusable } from '../blame.ts';
import {
  baseEnvironment,
  type CommandContext,
  containerSpec,
  defaultContext,
  engineNetwork,
} from '../prepare/environment.ts';
import type { TrialSpec } from '../spec.ts';
import {
  imageOfBuild,
  type ObserveBuild,
  obtainImage,
  ownImage,
  type PullParts,
  requireImage,
  usedImage,
  whyMissing,
} from './obtain-image.ts';

/** The image that a trial's environment begins with, and how commands run in it. */
export interface StartImage extends CommandContext {
  id: string;
  /** What results say about it. */
  used: UsedImage;
  /** Variables that decide what programs run or load, and name a folder in the workspace. */
  openVariables: string[];
  /** What a validator gets in place of these variables. */
  closedEnv: Record<string, string>;
  /** What it starts by itself. */
  program: Pick<Image, 'entrypoint' | 'command'>;
  /** Whether it has a `node`, of whatever version. */
  hasNode: boolean;
  /** Whether its containers have folders outside their layer, which no snapshot contains. */
  hasVolumes: boolean;
}

export type StartSpec = Pick<TrialSpec, 'sandbox' | 'environment'> & GradedBy;

type GradedBy = Partial<Pick<TrialSpec, 'verify' | 'validator' | 'tests'>>;

/** Whether the workspace of a fresh sandbox is emptied to grade a trial, and filled with the agent's. */
export function isEmptied({ verify, validator, tests }: GradedBy): boolean {
  return verify !== undefined || validator !== undefined || tests?.fresh?.brought.kind === 'workspace';
}

/**
 * Finds the image of a trial's sandbox, or pulls it. Throws `IMAGE_MISSING` for an image of the
 * configuration, and a {@link TrialFailure} if an image that the case names is missing or cannot be used.
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
    if (environment.user !== undefined) {
      const container = containerSpec(sandbox, start, { network: 'none', labels: {} });
      await using made = await engine.createContainer({ ...container, imageId: image.id }, signal);
      if (!(await hasUser(made, environment.user, signal)))
        throw unusable(`the image ${sandbox.image} ${noUser(environment.user)}`);
    }
    return start;
  }
  const named = {
    name: environment.image?.name ?? '',
    used: sandbox.image,
    place,
    phase: 'sandbox',
  } as const;
  const found =
    built === undefined
      ? await requireImage(parts, named, signal)
      : await imageOfBuild(engine, built, signal);
  const start = startOf(found, { sandbox, environment });
  const obstacle = workdirObstacle(start.workspace, isEmptied(spec) ? 'emptied' : 'kept');
  if (obstacle !== undefined) {
    const why = `cannot be the workspace: ${obstacle}`;
    throw unusable(`${place}: the working folder ${start.workspace} ${why}. Set workdir.`);
  }
  const container = requireResources(engine, found, sandbox, start, `${place}: `);
  const has = await contentsOf(engine, container, found, signal);
  const image = `${place}: the image ${sandbox.image}`;
  const lacking = (what: string) => unusable(`${image} has no ${what}`);
  if (!has.shell) throw lacking('/bin/sh, with which Offsite starts everything');
  if (!has.user) throw unusable(`${image} ${noUser(container.user)}`);
  if (!has.bash) {
    const where = `bash in its PATH (${container.env?.PATH ?? ''})`;
    throw lacking(`${where}; it runs prepare, harness and verify: install it, or set PATH in the image`);
  }
  return { ...start, hasNode: has.node };
}

function noUser(user: string | undefined): string {
  return `has no user ${user}: create it, or set another user`;
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
  const workspace = environment.workdir ?? (own || defaultContext.workspace);
  const home = homeOf(image, { sandbox, environment });
  const closedEnv = closedVariables({ ...image.env, ...environment.env, ...home }, workspace);
  return {
    id: image.id,
    used: usedImage(sandbox.image, image),
    workspace,
    openVariables: Object.keys(closedEnv),
    closedEnv,
    user: sandbox.user ?? (image.user === '' ? undefined : image.user),
    env: { ...baseEnvironment(image), ...home },
    program: { entrypoint: image.entrypoint, command: image.command },
    hasNode: true,
    hasVolumes: image.volumes.length > 0,
  };
}

/** The home to set. If none is set, the engine uses the user's home in /etc/passwd. */
function homeOf({ user }: Image, { sandbox, environment }: StartSpec): { HOME?: string } {
  if (environment.user !== undefined) return {};
  if (sandbox.user !== undefined) return { HOME: '/tmp' };
  return user === '' ? { HOME: '/root' } : {};
}

interface ImageContents {
  /** Whether it has the user that commands run as. */
  user: boolean;
  shell: boolean;
  bash: boolean;
  node: boolean;
}

/**
 * Which of the things that trials need are in an image. Looks at its files and starts nothing. Some round
 * trips.
 */
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
  return {
    user: await hasUser(container, spec.user ?? '', signal),
    shell: await isThere('/bin/sh'),
    bash: await isOnPath('bash'),
    node: await isOnPath('node'),
  };
}

type Files = Pick<Container, 'kindOf' | 'archive'>;

/** Whether commands can run as this user, which may have a group: `app:staff`. */
export async function hasUser(container: Files, user: string, signal: AbortSignal): Promise<boolean> {
  const parts = user.split(':');
  const [name = '', group = ''] = parts;
  const has = async (path: string, entry: string) =>
    /^\d*$/.test(entry) ? Number(entry) <= lastId : await hasEntry(container, { path, name: entry }, signal);
  return parts.length <= 2 && (await has('/etc/passwd', name)) && (await has('/etc/group', group));
}

/** Engines take no larger number of a user or a group. */
const lastId = 2 ** 31 - 1;

/**
 * Whether a list of users or groups has this name. True if the file is not a regular one, because then only
 * the engine can say.
 */
async function hasEntry(
  container: Files,
  { path, name }: { path: string; name: string },
  signal: AbortSignal,
): Promise<boolean> {
  if ((await container.kindOf(path, signal)) !== 'other') return false;
  let text = '';
  for await (const { type, content } of container.archive(path, signal, suiteFiles.bytes.file)) {
    if (type !== 'file') return true;
    text = Buffer.concat(await Array.fromAsync(content())).toString('utf8');
  }
  const lines = text.split('\n');
  return lines.some((line) => line.startsWith(`${name}:`));
}

/**
 * What a validator gets in place of the variables that decide what programs run or load, and name a folder in
 * the workspace.
 */
function closedVariables(env: Readonly<Record<string, string>>, workspace: string): Record<string, string> {
  const closed = Object.entries(env).flatMap(([name, value]) => {
    const without = name === 'PATH' ? pathOutside(value, workspace) : '';
    const isOpen = name === 'PATH' ? without !== value : pathsIn(value, workspace).length > 0;
    return isOpen && loading.test(name) ? [[name, without] as const] : [];
  });
  return Object.fromEntries(closed);
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

/**
 * The image that a sandbox names, found in one round trip or pulled. Throws `IMAGE_MISSING` if there is none.
 */
async function baseImage(parts: PullParts, sandbox: Sandbox, signal: AbortSignal): Promise<Image> {
  const { image, name } = sandbox;
  const obtained = await obtainImage(parts, image, signal);
  if (obtained.kind === 'found') return obtained.image;
  const isOurs = ownImage.test(image);
  const flavour = Object.entries(baseImageRecipes).find(([, { tag }]) => image === `offsite/base:${tag}`);
  const python = flavour && flavour[1] !== baseImageRecipe ? ` --python ${flavour[0]}` : '';
  throw new SandboxRefused(
    { sandbox: name, setting: 'image' },
    `the engine has no image ${image}, which the sandbox "${name}" names${whyMissing(obtained)}`,
    {
      code: 'IMAGE_MISSING',
      // The configuration names this image. Only the user can provide it, even if the problem is that a
      // registry does not answer.
      kind: isOurs ? 'infrastructure' : 'input',
      hint: isOurs ? `Build it: offsite engine base-image${python}` : `Pull it: docker pull ${image}`,
    },
  );
}

/** A sandbox of the configuration, and the setting of it that is wrong, if it is one. */
interface RefusedSetting {
  sandbox: string;
  setting?: 'image' | undefined;
}

/** An engine has no image for a sandbox of the configuration, or cannot provide what it requires. */
export class SandboxRefused extends OffsiteError {
  override readonly name = 'SandboxRefused';
  readonly refused: RefusedSetting;

  constructor(refused: RefusedSetting, message: string, options: OffsiteErrorOptions) {
    super(message, options);
    this.refused = refused;
  }
}

export interface CheckedPlan {
  variants: readonly { sandbox: Sandbox }[];
  /** A plan that an older Offsite stored has no environments. */
  cases: readonly {
    local: Partial<Pick<PlannedCase['local'], 'environment' | 'tests'>> & {
      steps?: { list: readonly Pick<PlannedCase['local'], 'tests'>[] } | undefined;
    };
  }[];
}

/**
 * Throws if this engine cannot run one of the sandboxes, so that a batch fails before it starts anything.
 * The images that its cases name are looked for later.
 */
export async function checkSandboxes(
  engine: Engine,
  { variants, cases }: CheckedPlan,
  signal: AbortSignal,
  observeBuild: ObserveBuild = () => undefined,
): Promise<void> {
  const usesImage = cases.some(({ local: { environment } }) => !environment?.image && !environment?.build);
  for (const sandbox of new Map(variants.map(({ sandbox }) => [sandbox.name, sandbox])).values()) {
    const imageId = usesImage ? (await baseImage({ engine, observeBuild }, sandbox, signal)).id : '';
    const network = engineNetwork(sandbox);
    const spec = { ...containerSpec(sandbox, defaultContext, { network, labels: {} }), imageId };
    requireEnforceable(sandbox, spec, engine);
    requireLabels([...(sandbox.needs ?? []), ...cases.flatMap(needsOf)], engine);
  }
}

function requireEnforceable({ name }: Sandbox, spec: ContainerSpec, { capabilities }: Engine): void {
  try {
    assertEnforceable(spec, capabilities, name);
  } catch (error) {
    if (!(error instanceof OffsiteError)) throw error;
    const { message, code, kind, hint } = error;
    throw new SandboxRefused({ sandbox: name }, message, { code, kind, ...(hint && { hint }), cause: error });
  }
}

/** The labels that a case needs besides those of its sandbox. */
export function needsOf({ local: { environment, tests, steps } }: CheckedPlan['cases'][number]): string[] {
  const graded = [tests, ...(steps?.list ?? []).map((step) => step.tests)];
  return [environment, ...graded.map((one) => one?.fresh?.environment)].flatMap((one) => one?.needs ?? []);
}

/** Throws `LABEL_MISSING`. */
function requireLabels(needs: readonly string[], { labels, capabilities }: Engine): void {
  const missing = missingLabel(needs, { labels, arch: capabilities.arch });
  if (missing === undefined) return;
  throw inputError('LABEL_MISSING', `a sandbox needs ${missing}, which this machine does not have`, {
    hint: 'If the machine has it, name it under labels in offsite.yaml. Otherwise run the suite on another one.',
  });
}
