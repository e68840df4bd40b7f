import { usedImages } from '../../suite/dockerfile.ts';
import type { CaseEnvironment } from '../../suite/environment.ts';

export interface MappedImage {
  name: string;
  usedInstead: string;
}

/** The images that the configuration uses in place of those that a case or its Dockerfile names. */
export function mappedImages(...environments: (CaseEnvironment | undefined)[]): MappedImage[] {
  const all = environments.flatMap((environment) =>
    environment ? [environment, ...(environment.services ?? [])] : [],
  );
  return [...new Map(all.flatMap(mappedIn).map((image) => [image.name, image])).values()];
}

function mappedIn({ image, build }: Pick<CaseEnvironment, 'image' | 'build'>): MappedImage[] {
  if (image?.mappedTo !== undefined) return [{ name: image.name, usedInstead: image.mappedTo }];
  if (!build) return [];
  const names = new Set(usedImages(build.dockerfile, build.args).map(({ name }) => name));
  return [...names].flatMap((name) => {
    const usedInstead = build.images[name];
    return usedInstead === undefined ? [] : [{ name, usedInstead }];
  });
}
