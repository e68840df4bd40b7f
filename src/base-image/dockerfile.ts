import { type BaseImageRecipe, recipeHash, recipeLabel } from './recipe.ts';

/** Builds the recipe's image on the registry's image, which the engine already has. */
export function dockerfileOf(recipe: BaseImageRecipe): string {
  const packages = recipe.debianPackages.join(' ');
  return [
    `FROM ${recipe.registryImage}`,
    'RUN apt-get update \\',
    ` && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends ${packages} \\`,
    ' && rm -rf /var/lib/apt/lists/*',
    'ENV LANG=C.UTF-8',
    // The parent's entrypoint runs unknown words as scripts; a sandbox runs exactly what it is given.
    'ENTRYPOINT []',
    'CMD ["bash"]',
    `LABEL ${recipeLabel}="${recipeHash(recipe)}"`,
    '',
  ].join('\n');
}
