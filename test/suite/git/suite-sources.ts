import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach } from 'vitest';
import type { PlacedFile } from '../../../src/suite/environment.ts';
import { BadFile } from '../../../src/suite/file-issues.ts';
import { sourceEntries } from '../../../src/suite/git/commit-files.ts';
import { fetchSources, type SourceParts } from '../../../src/suite/git/fetch-sources.ts';
import type { PlannedSource } from '../../../src/suite/git/git-source.ts';
import { loadConfig } from '../../../src/suite/load-config.ts';
import { loadSuite } from '../../../src/suite/load-suite.ts';
import { anyHarness } from '../any-harness.ts';
import { makeRepository } from './repository.ts';

const { signal } = new AbortController();

/** A folder with a suite's folder in it, for one test. */
export interface SuitePlace {
  folder: string;
  suiteFolder: string;
  /** What was said of the sources that were fetched. */
  notes: string[];
}

/** Makes a place for each test of a file, and removes it. What fetches there comes with it. */
export function suitePlaces() {
  const place: SuitePlace = { folder: '', suiteFolder: '', notes: [] };
  beforeEach(() => {
    place.folder = mkdtempSync(join(tmpdir(), 'offsite-git-'));
    place.suiteFolder = join(place.folder, 'suite');
    mkdirSync(place.suiteFolder);
    place.notes = [];
  });
  afterEach(() => rmSync(place.folder, { recursive: true }));
  return {
    place,
    fetchFor: fetchFor.bind(undefined, place),
    sourcesOf: sourcesOf.bind(undefined, place),
    problemOf: problemOf.bind(undefined, place),
    gitIn: gitIn.bind(undefined, place),
  };
}

/** Writes a suite with these cases, and fetches their sources. */
async function fetchFor(
  { folder, notes }: SuitePlace,
  path: string,
  cases: string[],
  parts: Partial<SourceParts> = {},
) {
  mkdirSync(path, { recursive: true });
  const file = join(path, 'suite.yaml');
  const head = ['suite: { id: s, prompt: go }', 'variants: [{ model: none, harness: any }]'];
  writeFileSync(file, [...head, 'cases:', ...cases, ''].join('\n'));
  const fetched = await fetchSources(file, {
    dataFolder: join(folder, 'data'),
    signal,
    note: (message) => notes.push(message),
    onProgress: () => undefined,
    ...parts,
    env: { PATH: process.env.PATH, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1', ...parts.env },
  });
  return { file, fetched };
}

/** The planned sources of a suite, case by case. */
async function sourcesOf(
  place: SuitePlace,
  sources: string[],
  parts: Partial<SourceParts> = {},
): Promise<PlannedSource[]> {
  const cases = sources.map((source, index) => `  - { id: c${index}, source: ${source}, verify: "true" }`);
  const { file, fetched } = await fetchFor(place, place.suiteFolder, cases, parts);
  const config = loadConfig({ suiteFolder: place.suiteFolder, env: {} });
  const plan = loadSuite(file, config, [anyHarness], { sources: fetched });
  return plan.cases.map(({ local }) => local.environment.source as PlannedSource);
}

/** All problems that a suite with this source is refused with. */
async function problemOf(place: SuitePlace, source: string, parts?: Partial<SourceParts>): Promise<string> {
  try {
    await sourcesOf(place, [source], parts);
  } catch (error) {
    if (error instanceof BadFile) return error.message.replaceAll(`${place.suiteFolder}/`, '');
    throw error;
  }
  throw new Error('the source was accepted');
}

export async function entriesOf(source: PlannedSource | undefined): Promise<PlacedFile[]> {
  if (!source) throw new Error('no source');
  return Array.fromAsync(sourceEntries(source, { PATH: process.env.PATH }, signal));
}

export async function filesOf(source: PlannedSource | undefined): Promise<Record<string, string>> {
  const files = (await entriesOf(source)).filter(({ path }) => !path.startsWith('.git'));
  return Object.fromEntries(
    files.map((file) => [
      file.path,
      'content' in file ? file.content.toString() : 'linkTarget' in file ? `-> ${file.linkTarget}` : 'folder',
    ]),
  );
}

/** Writes what the sandbox gets, and returns git there. */
async function gitIn({ folder }: SuitePlace, source: PlannedSource | undefined) {
  const path = mkdtempSync(join(folder, 'workspace-'));
  for (const entry of await entriesOf(source)) {
    const at = join(path, entry.path);
    mkdirSync('folder' in entry ? at : dirname(at), { recursive: true });
    if ('content' in entry) writeFileSync(at, entry.content);
  }
  const { git } = makeRepository(join(folder, 'other'));
  return { path, git: (...args: string[]) => git('-C', path, ...args) };
}
