import { createHash } from 'node:crypto';

/**
 * What the base image is made of. Everything that changes the image belongs here, so that it changes the
 * hash.
 */
export interface BaseImageRecipe {
  /** Raise this if the build changes but no other field does. */
  revision: number;
  /** The image's name without a tag. */
  repository: string;
  debianSuite: string;
  debianPackages: readonly string[];
  nodeMajor: number;
  /** For builds from Debian packages; an image from a registry contains its own npm. */
  npmVersion: string;
  /** The image to build on if a registry answers. */
  registryImage: string;
}

export const baseImageRecipe: BaseImageRecipe = {
  revision: 2,
  repository: 'offsite/base',
  debianSuite: 'bookworm',
  debianPackages: ['bash', 'ca-certificates', 'curl', 'git', 'procps', 'python3'],
  nodeMajor: 24,
  npmVersion: '11.21.2',
  registryImage: 'node:24-bookworm-slim',
};

/**
 * The label that carries the recipe's hash. Containers inherit their image's labels, so its key must never be
 * one by which a sweep finds containers.
 */
export const recipeLabel = 'offsite-base-recipe';

/** The first 12 hex digits of the recipe's sha256; the order of its keys doesn't matter. */
export function recipeHash(recipe: BaseImageRecipe): string {
  const sorted = Object.entries(recipe).sort(([a], [b]) => (a < b ? -1 : 1));
  return createHash('sha256').update(JSON.stringify(sorted)).digest('hex').slice(0, 12);
}

/** The name of this recipe's image: `offsite/base:<hash>`. A newer recipe has another one. */
export function baseImageName(recipe: BaseImageRecipe): string {
  return `${recipe.repository}:${recipeHash(recipe)}`;
}
