import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { offsiteHere } from '../offsite.ts';
import { openPlace } from '../place.ts';
import { inTheCommandLine } from './command-line.ts';
import { inConfigurations } from './configuration.ts';
import { type Mistake, soundProject } from './mistake.ts';
import { inNames } from './names.ts';
import { inSuites } from './suites.ts';
import { inYaml } from './yaml.ts';

const tables = {
  'the command line': inTheCommandLine,
  YAML: inYaml,
  'a suite': inSuites,
  names: inNames,
  'the configuration': inConfigurations,
};

async function printedFor({ files, args = ['run', 'suite.yaml'], from = '.' }: Mistake) {
  using place = openPlace();
  for (const [name, text] of Object.entries({ ...soundProject, ...files })) place.write(name, text);
  const project = join(place.folder, 'project');
  mkdirSync(project, { recursive: true });
  const env = { OFFSITE_HOME: place.dataFolder, HOME: place.folder };
  const inside = { ...place, folder: join(project, from) };
  const { exitCode, stdout, stderr } = await offsiteHere(inside, args, { env, dataFolder: null });
  const lines = stderr.replaceAll(project, 'PROJECT').replaceAll(place.folder, 'HOME').trimEnd().split('\n');
  return { exitCode, stdout, printed: lines.filter((line) => !ofTheMachine.test(line)) };
}

/** Lines of commands that reach the engine. They depend on the machine, and on who else uses it. */
const ofTheMachine = /^(service: |removed from the engine: )/;

describe.each(Object.entries(tables))('a mistake in %s:', (_, mistakes) => {
  test.each(mistakes.map((row) => [row.mistake, row] as const))('%s', async (_name, row) => {
    const expected = { exitCode: row.exit ?? 2, stdout: '', printed: row.printed };
    expect(await printedFor(row)).toEqual(expected);
  });
});

test('there are at least 55', () => {
  expect(Object.values(tables).flat().length).toBeGreaterThanOrEqual(55);
});
