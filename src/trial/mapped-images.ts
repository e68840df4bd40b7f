import { usedImages } from '../suite/dockerfile.ts';
import type { CaseEnvironment } from '../suite/environment.ts';

export interface MappedImage {
  name: string;
  usedInstead: string;
}

/** The images that the configuration uses in place of those that a case or its Dockerfile names. */
export function mappedImages({ services = [], ...environment }: CaseEnvironment): MappedImage[] {
  const all = [environment, ...services].flatMap(mappedIn);
  return all.filter(({ name }, index) => all.findIndex((one) => one.name === name) === index);
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
