import { describe, expect, test } from 'vitest';
import { dockerfileOf } from '../../src/base-image/ensure-base-image.ts';
import { baseImageName, baseImageRecipe, baseImageRecipes, recipeHash } from '../../src/base-image/recipe.ts';

describe('the name of the base image', () => {
  test('is the same for the same recipe, however it is written down', () => {
    const reversed = Object.fromEntries(Object.entries(baseImageRecipe).reverse()) as typeof baseImageRecipe;
    expect(baseImageName(reversed)).toBe(baseImageName(baseImageRecipe));
    expect(baseImageName(baseImageRecipe)).toMatch(/^offsite\/base:[0-9a-f]{12}$/);
  });

  test.each([
    ['a package', { debianPackages: [...baseImageRecipe.debianPackages, 'jq'] }],
    ['npm', { npm: { ...baseImageRecipe.npm, version: '11.0.0' } }],
    ['the way it is built', { revision: baseImageRecipe.revision + 1 }],
  ])('is another when %s changes, so that a newer Offsite builds anew', (_what, change) => {
    expect(recipeHash({ ...baseImageRecipe, ...change })).not.toBe(recipeHash(baseImageRecipe));
  });
});

test('each flavour has a name, an alias and a Debian of its own', () => {
  const recipes = Object.values(baseImageRecipes);
  for (const key of ['tag', 'debianSuite', 'registryImage'] as const)
    expect(new Set(recipes.map((recipe) => recipe[key])).size).toBe(recipes.length);
  expect(new Set(recipes.map(baseImageName)).size).toBe(recipes.length);
});

test('the Dockerfile installs uv with its checksum, and goes on without', () => {
  const line = dockerfileOf(baseImageRecipe)
    .split('\n')
    .find((each) => each.includes('pip install'));
  expect(line).toMatch(/uv==\S+ --hash=sha256:.* --require-hashes .*\|\| echo/);
});

test('the Dockerfile installs the packages on the registry image and carries the hash', () => {
  const text = dockerfileOf(baseImageRecipe);
  expect(text).toContain(`FROM ${baseImageRecipe.registryImage}\n`);
  for (const name of baseImageRecipe.debianPackages)
    expect(text).toMatch(new RegExp(`install .*\\b${name}\\b`));
  expect(text).toContain(recipeHash(baseImageRecipe));
});

test('no container becomes ours by inheriting a label of the image', () => {
  expect(dockerfileOf(baseImageRecipe)).not.toMatch(/LABEL "?offsite"?[= ]/);
});
