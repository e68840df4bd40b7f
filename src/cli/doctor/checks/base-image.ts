import { baseImageName, baseImageRecipe } from '../../../base-image/recipe.ts';
import { engineCheck } from '../check.ts';

const dayMs = 24 * 60 * 60_000;
/** Days after which the image's packages should be renewed. */
const oldDays = 60;

export const baseImage = engineCheck('base image', async (engine, { clock, signal }) => {
  const name = baseImageName(baseImageRecipe);
  const image = await engine.findImage(name, signal);
  if (image === undefined) {
    const older = await engine.findImage(`${baseImageRecipe.repository}:${baseImageRecipe.tag}`, signal);
    const found = older ? `${name} is missing; there is one of another version` : `${name} is missing`;
    return { state: 'fail', kind: 'infrastructure', found, fix: 'Make it: offsite engine base-image' };
  }
  const days = Math.floor((clock.now() - image.madeAt) / dayMs);
  const found = `${name}, made ${days < 1 ? 'today' : days === 1 ? 'yesterday' : `${days} days ago`}`;
  if (days <= oldDays) return { state: 'ok', found };
  return { state: 'warn', found, fix: 'Renew its packages: offsite engine base-image --force' };
});
