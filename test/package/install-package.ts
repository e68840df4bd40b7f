import { cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { execa } from 'execa';
import { packedReadme } from '../../scripts/packed-readme.ts';

const root = join(import.meta.dirname, '../..');

/** Packs what npm would publish, without touching `dist/` of the checkout. Resolves with the packed file. */
export async function packPackage(folder: string): Promise<string> {
  const staged = join(folder, 'staged');
  await mkdir(staged);
  await execa(process.execPath, ['scripts/build.ts', join(staged, 'dist')], { cwd: root });
  const { files } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { files: string[] };
  await writeFile(join(staged, 'README.md'), packedReadme(await readFile(join(root, 'README.md'), 'utf8')));
  for (const name of ['package.json', ...files.filter((each) => each !== 'dist')]) {
    await cp(join(root, name), join(staged, name), { recursive: true });
  }
  const { stdout } = await execa('npm', ['pack', '--ignore-scripts', '--json'], { cwd: staged });
  const [{ filename }] = JSON.parse(stdout) as [{ filename: string }];
  return join(staged, filename);
}

/** Installs a packed file in a new folder. Nothing else is needed, so nothing comes from a registry. */
export async function installPacked(packed: string, place: string, ...options: string[]): Promise<void> {
  await mkdir(place);
  await writeFile(join(place, 'package.json'), '{ "private": true }');
  await execa('npm', ['install', '--offline', ...options, packed], { cwd: place });
}

/** Packs and installs in a new folder within another one. Resolves with that folder. */
export async function installPackage(folder: string): Promise<string> {
  const project = join(folder, 'project');
  await installPacked(await packPackage(folder), project);
  return project;
}
