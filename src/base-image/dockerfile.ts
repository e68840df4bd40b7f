import { type BaseImageRecipe, recipeHash, recipeLabel } from './recipe.ts';
import { pipInstall, withoutUv } from './uv.ts';

/** Builds the recipe's image on the registry's image, which the engine already has. */
export function dockerfileOf(recipe: BaseImageRecipe): string {
  const packages = recipe.debianPackages.join(' ');
  return [
    `FROM ${recipe.registryImage}`,
    'RUN apt-get update \\',
    ` && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends ${packages} \\`,
    // Without EXTERNALLY-MANAGED, pip may install into the system, as in the official images of Python.
    ' && rm -rf /var/lib/apt/lists/* /usr/lib/python3*/EXTERNALLY-MANAGED',
    `RUN echo "${recipe.uv}" > /tmp/uv.txt; pip ${pipInstall} -r /tmp/uv.txt || echo "${withoutUv}"; rm /tmp/uv.txt`,
    'ENV LANG=C.UTF-8',
    // The parent's entrypoint passes an unknown command to Node; a sandbox runs exactly what it is given.
    'ENTRYPOINT []',
    'CMD ["bash"]',
    `LABEL ${recipeLabel}="${recipeHash(recipe)}"`,
    '',
  ].join('\n');
}
