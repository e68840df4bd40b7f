import { posix, resolve } from 'node:path';
import { messageOf } from '../offsite-error.ts';
import { type CaseOracle, type CaseTests, thresholdsOf } from './case-tests.ts';
import type { PlacedFile } from './environment.ts';
import { BadFile } from './file-issues.ts';
import { FileReader } from './file-reader.ts';
import type { Path, SuiteReader } from './suite-reader.ts';
import type { OracleSource, TestsSource } from './tests-source.ts';

/** The tests of a case with their files. What is wrong with these is reported. */
export function plannedTests(source: TestsSource, path: Path, reader: SuiteReader): CaseTests {
  const { folders = {}, files = {}, command, env = {}, user, timeout, rewards, prints, threshold } = source;
  const { collect = [], hosts } = source;
  const targets = [...Object.keys(folders), ...Object.keys(files).map((file) => posix.dirname(file))];
  // What the agent left there would be found in place of the tests, or of what they write.
  const written = rewards ? [posix.dirname(rewards.json), posix.dirname(rewards.text)] : [];
  return {
    files: filesOf({ folders, files }, path, reader),
    emptied: [...new Set([...targets, ...written])],
    ...{ command, env, user, timeoutMs: timeout, thresholds: thresholdsOf(threshold) },
    ...(collect.length > 0 && {
      collect: collect.map(({ timeout, ...each }) => ({ ...each, timeoutMs: timeout })),
    }),
    ...(hosts && { network: { hosts, at: reader.issueAt([...path, 'hosts']) } }),
    reading: rewards
      ? { kind: 'reward-files', ...rewards }
      : { kind: 'printed-tests', parser: prints ?? 'pytest' },
  };
}

/** A solution with its files. What is wrong with these is reported. */
export function plannedOracle(
  { command, folders = {}, files = {}, env = {} }: OracleSource,
  path: Path,
  reader: SuiteReader,
): CaseOracle {
  return { files: filesOf({ folders, files }, path, reader), command, env };
}

/** By their path in the sandbox. Links are followed. */
function filesOf(
  { folders, files }: { folders: Record<string, string>; files: Record<string, string> },
  path: Path,
  { parts: { folder, reach, keys }, issues, report }: SuiteReader,
): PlacedFile[] {
  // Each case may have as many bytes as the texts of the suite together.
  const read = new FileReader({ reach, keys });
  const placed = new Map<string, PlacedFile>();
  const attempt = (key: string, name: string, each: () => void) => {
    try {
      each();
    } catch (error) {
      if (error instanceof BadFile) issues.push(...error.issues);
      else report([...path, key], `${name}: ${messageOf(error)}`);
    }
  };
  const put = (to: string, { content, isExecutable }: { content: Buffer; isExecutable: boolean }) =>
    placed.set(to, { path: to, content, mode: isExecutable ? 0o755 : 0o644 });
  for (const [to, from] of Object.entries(folders))
    attempt('folders', from, () => {
      for (const file of read.folder(resolve(folder, from), to)) put(file.path, file);
    });
  for (const [to, from] of Object.entries(files))
    attempt('files', from, () => put(to, read.file(resolve(folder, from))));
  return [...placed.values()];
}
