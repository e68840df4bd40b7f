import { TrialFailure } from '../failure.ts';
import type { TrialSpec } from '../spec.ts';
import type { ImageParts } from './image-parts.ts';
import { isEmptied, type StartImage, startImage } from './start-image.ts';

/** The image that the environment begins with. Each is looked up once, and fails once. */
export async function knownStart(
  parts: ImageParts,
  spec: TrialSpec,
  built: string | undefined,
  signal: AbortSignal,
): Promise<StartImage> {
  const { starts, failures, observeBuild } = parts;
  const { image, user, cpus, memory } = spec.sandbox;
  const { workdir, image: named } = spec.environment;
  const key = JSON.stringify([built ?? image, user, cpus, memory, workdir, named?.name, isEmptied(spec)]);
  const failure = failures.get(key);
  if (failure) throw failure;
  const known = starts.get(key);
  if (known) return known;
  try {
    const start = await startImage(parts, spec, built, signal);
    starts.set(key, start);
    return start;
  } catch (error) {
    if (error instanceof TrialFailure) {
      const { kind } = error.failure;
      // A registry that did not answer may do so later.
      if (kind === 'task') failures.set(key, error);
      const reportKey = `reported ${key}`;
      if (!failures.has(reportKey)) {
        failures.set(reportKey, error);
        const state = { kind: 'failed' as const, cause: error.failure };
        const missing = built === undefined ? named?.name : undefined;
        const what = missing === undefined ? `image of ${spec.caseName}` : `image ${missing}`;
        observeBuild({ id: key, what, image: missing, state });
      }
    }
    throw error;
  }
}
