import { infrastructureError, OffsiteError } from '../../base/offsite-error.ts';
import { withinReserve } from '../../engine/container/disk-space.ts';
import type { Engine } from '../../engine/engine.ts';
import type { Image, PullProgress } from '../../engine/port/images.ts';
import { isRefusal, pullObstacle } from '../../engine/pull/obtain-image.ts';
import type { Cause } from '../../record/cause.ts';
import type { UsedImage } from '../../record/environment.ts';
import { TrialFailure } from '../blame.ts';

/**
 * Only `offsite engine base-image` makes images of these names. A registry may have a stranger's image of
 * such a name.
 */
export const ownImage = /^(?:docker\.io\/)?offsite\/base(?::|@|$)/;

/** Milliseconds between two reports of how far a pull is. */
const reportMs = 1_000;

export interface PullParts {
  engine: Engine;
  /** Called during a pull. */
  observeBuild: ObserveBuild;
}

/** An image that was found or pulled; else why there is none. */
export type Obtained =
  | { kind: 'found'; image: Image }
  /** No registry was asked for it. */
  | { kind: 'missing' }
  | { kind: 'refused' | 'unreachable'; why: string };

/**
 * Finds an image, or pulls it if the configuration says so, and reports the progress of the pull. An image of
 * Offsite's own is never pulled. Throws errors of the engine itself.
 */
export async function obtainImage(
  { engine, observeBuild }: PullParts,
  name: string,
  signal: AbortSignal,
): Promise<Obtained> {
  if (ownImage.test(name)) {
    const image = await engine.findImage(name, signal);
    return image ? { kind: 'found', image } : { kind: 'missing' };
  }
  const { clock } = engine.port;
  let reportedAt: number | undefined;
  const id = `pull of ${name}`;
  const onPull = (progress: PullProgress) => {
    const now = clock.now();
    if (reportedAt !== undefined && now - reportedAt < reportMs) return;
    reportedAt = now;
    observeBuild({ id, what: `${id}${howFar(progress)}`, state: { kind: 'running' } });
  };
  let ending: 'built' | 'stopped' = 'stopped';
  try {
    const image = await withinReserve(engine, signal, (pulling) =>
      engine.obtainImage(name, { signal: pulling, onPull }),
    );
    ending = 'built';
    return image ? { kind: 'found', image } : { kind: 'missing' };
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof OffsiteError) || !reasons.has(error.code)) throw error;
    return { kind: isRefusal(error) ? 'refused' : 'unreachable', why: pullObstacle(error) };
  } finally {
    if (reportedAt !== undefined) observeBuild({ id, what: id, state: { kind: ending } });
  }
}

const reasons = new Set(['IMAGE_REFUSED', 'IMAGE_PULL_FAILED', 'IMAGE_FAILED', 'REGISTRY_LOGIN']);

function howFar({ bytes, total }: PullProgress): string {
  if (total === 0) return '';
  const [done, all] = [bytes, total].map((count) => Math.ceil(count / 1_000_000));
  return ` ${done} of ${all} MB`;
}

/**
 * The image that was built. If it was removed in the meantime, throws `ENGINE_NOT_FOUND`, so that it is built
 * again.
 */
export async function imageOfBuild(engine: Engine, id: string, signal: AbortSignal): Promise<Image> {
  const found = await engine.findImage(id, signal);
  if (found) return found;
  throw infrastructureError('ENGINE_NOT_FOUND', `the image ${id} was removed meanwhile`);
}

/**
 * The image that a case names, found or pulled. Throws a {@link TrialFailure} that says who is to blame: a
 * registry that did not answer may answer later.
 *
 * @param used what the configuration maps the name to
 */
export async function requireImage(
  parts: PullParts,
  { name, used, place, phase }: { name: string; used: string; place: string; phase: 'build' | 'sandbox' },
  signal: AbortSignal,
): Promise<Image> {
  const obtained = await obtainImage(parts, used, signal);
  if (obtained.kind === 'found') return obtained.image;
  const kind = obtained.kind === 'unreachable' ? 'infrastructure' : 'task';
  throw new TrialFailure({ kind, phase, message: `${place}: ${noImage(obtained, name, used)}` });
}

/** The message for an image that is missing. */
function noImage(obtained: Exclude<Obtained, { kind: 'found' }>, name: string, used: string): string {
  const what = used === name ? name : `${used}, which \`images\` maps ${name} to`;
  const map = 'map it in `advanced.images` of offsite.yaml';
  if (obtained.kind === 'missing')
    return `the engine has no image ${what}. Pull it (docker pull ${used}), or ${map}.`;
  const { why } = obtained;
  if (obtained.kind === 'refused')
    return `the engine has no image ${what}, and the registry refuses it: ${why}. Log in (docker login), or ${map}.`;
  return `the engine has no image ${what}, and cannot pull it: ${why}. If it cannot be pulled here, ${map}.`;
}

/** Why an image is missing, to continue a message. */
export function whyMissing(obtained: Exclude<Obtained, { kind: 'found' }>): string {
  return obtained.kind === 'missing' ? '' : `, and it cannot be pulled: ${obtained.why}`;
}

/** What a result says about an image that its environment was made of. */
export function usedImage(name: string, { id, digests, platform }: Image): UsedImage {
  const digest = digests[0]?.split('@')[1];
  return { name, id, platform, ...(digest !== undefined && { digest }) };
}

/** What happens to one step of an environment, an install or a prepare, that no snapshot exists of yet. */
export interface BuildEvent {
  /** The same for all events of a step, and for all trials that share it. */
  id: string;
  /** What is built, for people: `prepare of a`. Contains foreign text. */
  what: string;
  /** The image that cases name, if that is what failed. */
  image?: string | undefined;
  state: BuildState;
}

export type BuildState =
  /** Another agent builds it on the same engine, and its result is used. */
  | { kind: 'other-agent' }
  /** It waits, because the maximum number of builds runs. */
  | { kind: 'queued' }
  | { kind: 'running' }
  | { kind: 'built' }
  /** The script failed; all trials that need it are void for this cause. */
  | { kind: 'failed'; cause: Cause }
  /** Interrupted, or the engine failed: a later attempt may build it. */
  | { kind: 'stopped' };

/** The states of a build that has not ended. */
export type OpenBuildState = Extract<BuildState['kind'], 'running' | 'queued' | 'other-agent'>;

export function isOpen(state: BuildState): state is BuildState & { kind: OpenBuildState } {
  return ['running', 'queued', 'other-agent'].includes(state.kind);
}

export type ObserveBuild = (event: BuildEvent) => void;
