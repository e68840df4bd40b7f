import { existsSync } from 'node:fs';
import type { LoadedImages } from '../evidence/load-images.ts';
import type { TrialRecord } from '../record/trial-record.ts';
import type { NamedImage } from '../suite/environment.ts';
import { ownImage } from '../trial/prepare/obtain-image.ts';
import type { TrialSpec } from '../trial/spec.ts';

/** How a trial of somebody else is run here: with nothing of this machine but a sandbox. */

type Facts = Pick<TrialRecord, 'images' | 'left'>;

/** A trial as it can be run here. */
export type TrialHere =
  | { spec: TrialSpec; isBrought: boolean; obstacle?: undefined }
  /** Why it cannot be. */
  | { obstacle: string };

/**
 * A trial as it can be run here: one of this data folder is run as it was. Of one of somebody else, what the
 * reader makes again is worth more than what the owner brings, so that an image of the evidence is used only
 * for an environment that cannot be made again, and for what an agent left.
 *
 * @param parts.brought loads the images that came with the evidence
 */
export async function trialHere(
  spec: TrialSpec,
  record: Facts & Pick<TrialRecord, 'imageId' | 'environment'>,
  { isForeign, brought }: { isForeign: boolean; brought: () => Promise<LoadedImages> },
): Promise<TrialHere> {
  if (!isForeign) return { spec, isBrought: false };
  const obstacle = foreignObstacle(spec, record);
  if (obstacle === undefined) {
    if (record.left?.kind === 'image') await brought();
    return { spec: sealed(spec, record), isBrought: false };
  }
  const { ids, problems } = await brought();
  const inImage = inBroughtImage(spec, record, ids);
  const why = inImage ? foreignObstacle(inImage, record) : obstacle;
  if (inImage && why === undefined) return { spec: sealed(inImage, record), isBrought: true };
  return { obstacle: [why, ...problems].join('; ') };
}

/**
 * Why a definition of somebody else cannot be made again here, with nothing of this machine.
 *
 * @param spec of the plan that names no path outside the opened evidence
 */
export function foreignObstacle(spec: TrialSpec, record: Facts): string | undefined {
  const { testsHosts = [], steps } = spec;
  const places = placesOf(spec);
  const all = places.map(({ environment }) => environment);
  const services = all.flatMap((one) => one.services ?? []);
  if (all.some((one) => one.build) || services.some((one) => one.build))
    return 'its environment is built from files that the evidence does not hold: --include-image adds its image';
  if (all.some(({ source }) => source && !existsSync(source.repository)))
    return 'its workspace begins with a commit that the evidence does not hold';
  if (testsHosts.length > 0 || steps?.list.some((step) => (step.testsHosts ?? []).length > 0))
    return 'its tests reach hosts of the network, which nothing of somebody else does here';
  if (record.left?.kind === 'image' && !isId(record.left.imageId))
    return 'what it left is an image with a name, which can be another image here';
  const named = [
    ...places.flatMap(({ sandbox: { image, harnessImage } }) => [image, harnessImage ?? []].flat()),
    ...services.flatMap(({ image }) => (image ? [usedName(image)] : [])),
  ];
  const moving = named.find((name) => pinned(name, record) === undefined);
  if (moving === undefined) return undefined;
  return `the image ${moving} has neither a digest nor an id in its record, and can be another image here`;
}

/**
 * A trial in the image that its record names, which the evidence holds. Undefined if the image is not there,
 * or does not have what `prepare` made.
 */
function inBroughtImage(
  spec: TrialSpec,
  { imageId, environment = [] }: Pick<TrialRecord, 'imageId' | 'environment'>,
  ids: ReadonlySet<string>,
): TrialSpec | undefined {
  if (imageId === undefined || !ids.has(imageId)) return undefined;
  if (environment.some(({ phase, image }) => phase === 'prepare' && image === undefined)) return undefined;
  const { build, image } = spec.environment;
  const made = { build: undefined, source: undefined, files: undefined };
  const place = build?.place ?? image?.place;
  return {
    ...spec,
    prepare: undefined,
    profile: { ...spec.profile, install: undefined, files: [] },
    sandbox: { ...spec.sandbox, image: imageId },
    environment: {
      ...spec.environment,
      ...made,
      image: place === undefined ? undefined : { name: imageId, place },
    },
  };
}

/**
 * A trial of somebody else, with nothing that its definition asks of this machine beside a sandbox, and with
 * the images of its record: its names can be those of private images here, and its `prepare` has the network.
 */
export function sealed(spec: TrialSpec, record: Facts): TrialSpec {
  const own = { remoteAdd: 'refuse', seccomp: 'required', runtime: undefined } as const;
  const name = (image: string) => pinned(image, record) ?? image;
  const sandboxIn = (sandbox: TrialSpec['sandbox']) => ({
    ...sandbox,
    ...own,
    passEnv: [],
    image: name(sandbox.image),
    ...(sandbox.harnessImage !== undefined && { harnessImage: name(sandbox.harnessImage) }),
  });
  const placeIn = ({ environment, sandbox }: Place): Place => ({
    sandbox: sandboxIn(sandbox),
    environment: {
      ...environment,
      ...(environment.services && {
        services: environment.services.map(({ image, ...service }) => ({
          ...service,
          ...(image && { image: { ...image, mappedTo: name(usedName(image)) } }),
        })),
      }),
    },
  });
  const { testsIn, steps } = spec;
  return {
    ...spec,
    ...placeIn(spec),
    testsIn: testsIn && placeIn(testsIn),
    steps: steps && {
      ...steps,
      list: steps.list.map((step) => ({ ...step, testsIn: step.testsIn && placeIn(step.testsIn) })),
    },
  };
}

/**
 * An image by its digest or its id, as the record has them; undefined if it has only a name. Images of
 * Offsite's own are made on each machine, and keep their name.
 */
export function pinned(name: string, { images = [] }: Pick<Facts, 'images'>): string | undefined {
  if (ownImage.test(name) || isId(name) || /@sha256:[0-9a-f]{64}$/.test(name)) return name;
  const used = images.find((one) => one.name === name);
  if (used?.digest !== undefined && /^sha256:[0-9a-f]{64}$/.test(used.digest))
    return `${name.replace(/(:[^:/@]*)?(@.*)?$/, '')}@${used.digest}`;
  return used && isId(used.id) ? used.id : undefined;
}

/** Whether it is an engine's id of an image, as a whole. */
function isId(name: string): boolean {
  return /^(sha256:)?[0-9a-f]{64}$/.test(name);
}

function usedName({ name, mappedTo = name }: NamedImage): string {
  return mappedTo;
}

/** A sandbox, and what is in it. */
type Place = Pick<TrialSpec, 'environment' | 'sandbox'>;

/** The sandbox of the agent, and those of tests that have their own. */
function placesOf({ environment, sandbox, testsIn, steps }: TrialSpec): Place[] {
  const ofTests = [testsIn, ...(steps?.list ?? []).map((step) => step.testsIn)];
  return [{ environment, sandbox }, ...ofTests.filter((one) => one !== undefined)];
}
