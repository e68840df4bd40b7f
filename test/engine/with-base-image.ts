import { execa } from 'execa';
import { baseImageName, baseImageRecipe } from '../../src/base-image/recipe.ts';

/** Puts the base image of the machine's engine into another one. */
export async function loadBaseImage(host: string): Promise<void> {
  const names = [baseImageName(baseImageRecipe), `${baseImageRecipe.repository}:latest`];
  await execa('docker', ['save', ...names], { buffer: false }).pipe('docker', ['--host', host, 'load']);
}
