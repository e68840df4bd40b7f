import { posix, resolve } from 'node:path';
import { parseCheckedJson } from '../base/parse-json.ts';
import {
  type CaseOracle,
  type CaseTests,
  type FreshTests,
  type TestReading,
  thresholdsOf,
} from './case-tests.ts';
import type { PlacedFile } from './environment.ts';
import { BadFile } from './file-issues.ts';
import type { FileReader } from './file-reader.ts';
import type { SuiteReader } from './suite-reader.ts';
import { NamesFile, type OracleSource, type TestNames, type TestsSource } from './tests-source.ts';
import type { Path } from './yaml-file.ts';

/** Where a part of a case is, and what its files are read with. */
export interface CasePart {
  path: Path;
  reader: SuiteReader;
  /** For all files of the case. */
  files: FileReader;
}

/** The tests of a case with their files. What is wrong with these is reported. */
export function plannedTests(source: TestsSource, part: CasePart): CaseTests {
  const { folders = {}, files = {}, command, env = {}, user, timeout, rewards, named, threshold } = source;
  const { collect = [], hosts } = source;
  const targets = [...Object.keys(folders), ...Object.keys(files).map((file) => posix.dirname(file))];
  // A file that the agent left there could be taken for a test, or for what the tests write.
  const written = rewards ? [rewards.json, rewards.text] : named ? [named.report] : [];
  const emptied = [...new Set([...targets, ...written.map((file) => posix.dirname(file))])];
  const fresh = freshTests(source, emptied, part);
  return {
    files: placedFiles({ folders, files }, part),
    ...{ emptied, command, env, user, timeoutMs: timeout, thresholds: thresholdsOf(threshold) },
    ...(collect.length > 0 && {
      collect: collect.map(({ timeout, ...each }) => ({ ...each, timeoutMs: timeout })),
    }),
    ...(hosts && { network: { hosts, at: part.reader.issueAt([...part.path, 'hosts']) } }),
    ...(fresh && { fresh }),
    reading: readingOf(source, part),
  };
}

function readingOf({ rewards, prints, named }: TestsSource, part: CasePart): TestReading {
  if (rewards) return { kind: 'reward-files', ...rewards };
  if (!named) return { kind: 'printed-tests', parser: prints ?? 'pytest' };
  const { parser, report } = named;
  return {
    ...{ kind: 'named-tests', parser, report },
    failToPass: namesOf(named.failToPass, 'failToPass', part),
    passToPass: namesOf(named.passToPass, 'passToPass', part),
  };
}

/** The names of tests, inline or in JSON. */
function namesOf(given: TestNames, key: string, { path, reader, files }: CasePart): string[] {
  if (Array.isArray(given)) return given;
  const { folder } = reader.parts;
  return (
    reader.attempt([...path, 'named', key], given.file, () => {
      const names = NamesFile.safeParse(parseCheckedJson(files.text(resolve(folder, given.file))));
      if (names.success) return names.data;
      throw new BadFile([
        {
          file: resolve(folder, given.file),
          line: 1,
          column: 1,
          path: '',
          message: 'expected a list of names in JSON',
        },
      ]);
    }) ?? []
  );
}

/** Where the tests run, if not in the agent's own sandbox. */
function freshTests(
  source: TestsSource,
  emptied: string[],
  { path, reader }: CasePart,
): FreshTests | undefined {
  const { environment: own, brings, sealed = emptied, patch, restored = [] } = source;
  if (source.in === 'same' || brings === undefined) return undefined;
  const environment = own && reader.environment(own, path);
  if (brings === 'workspace') {
    const testPatch = patch ? reader.text(patch.source, [...path, 'patch', 'source']) : '';
    const { base = 'HEAD' } = patch ?? {};
    return { environment, brought: { kind: 'workspace', testPatch, base, restored } };
  }
  const artifacts = brings.map(({ path, except }) => ({ path, exclude: except }));
  return { environment, brought: { kind: 'artifacts', artifacts, sealed } };
}

/** A solution with its files. What is wrong with these is reported. */
export function plannedOracle(
  { command, folders = {}, files = {}, env = {} }: OracleSource,
  part: CasePart,
): CaseOracle {
  return { files: placedFiles({ folders, files }, part), command, env };
}

/** By their path in the sandbox. Links are followed. What is wrong with them is reported. */
export function placedFiles(
  { folders, files }: { folders: Record<string, string>; files: Record<string, string> },
  { path, reader, files: read }: CasePart,
): PlacedFile[] {
  const { folder } = reader.parts;
  const placed = new Map<string, PlacedFile>();
  const put = (to: string, { content, isExecutable }: { content: Buffer; isExecutable: boolean }) =>
    placed.set(to, { path: to, content, mode: isExecutable ? 0o755 : 0o644 });
  for (const [to, from] of Object.entries(folders))
    reader.attempt([...path, 'folders'], from, () => {
      for (const file of read.folder(resolve(folder, from), to)) put(file.path, file);
    });
  for (const [to, from] of Object.entries(files))
    reader.attempt([...path, 'files'], from, () => put(to, read.file(resolve(folder, from))));
  return [...placed.values()];
}
