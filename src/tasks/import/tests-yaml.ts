import { isDeepStrictEqual } from 'node:util';
import type { CaseOracle, CaseTests, FreshTests, TestReading, Thresholds } from '../../suite/case-tests.ts';
import type { PlacedFile } from '../../suite/environment.ts';
import { environmentYaml } from './environment-yaml.ts';
import {
  duration,
  fileYaml,
  given,
  NotCarried,
  nonEmpty,
  nonEmptyList,
  refuseOthers,
  type Writing,
  writingIn,
} from './words.ts';

/** How many names of tests, and how many characters of them, stand in the suite itself. */
const inline = { names: 10, characters: 1000 };

/** The tests of a case, or of a step, as a suite file says them. Throws {@link NotCarried}. */
export function testsYaml(
  tests: CaseTests,
  writing: Writing,
  thresholds: (given: Thresholds) => unknown = thresholdYaml,
): Record<string, unknown> {
  const { files, emptied, command, env, user, timeoutMs, reading, collect = [], network, fresh } = tests;
  const known = ['files', 'emptied', 'command', 'env', 'user', 'timeoutMs', 'reading', 'thresholds'];
  refuseOthers(tests, [...known, 'collect', 'network', 'fresh'], 'tests.');
  return given({
    ...(fresh && freshYaml(fresh, emptied, writing)),
    folders: foldersYaml(files, emptied, 'tests', writing),
    command,
    env: nonEmpty(env),
    user,
    timeout: duration(timeoutMs),
    collect: nonEmptyList(
      collect.map(({ timeoutMs, ...each }) => given({ ...each, timeout: duration(timeoutMs) })),
    ),
    ...readingYaml(reading, writing),
    hosts: network?.hosts,
    threshold: thresholds(tests.thresholds),
  });
}

function freshYaml({ environment, brought }: FreshTests, emptied: string[], writing: Writing) {
  const own = environment && environmentYaml(environment, writingIn('verifier', writing));
  const place = { in: 'fresh', environment: own };
  if (brought.kind === 'artifacts') {
    const brings = brought.artifacts.map(({ path, exclude }) =>
      exclude.length === 0 ? path : { path, except: exclude },
    );
    const isUsual = isDeepStrictEqual(brought.sealed, emptied);
    return { ...place, brings, sealed: isUsual ? undefined : brought.sealed };
  }
  const { testPatch, base, restored } = brought;
  const patch = { source: fileYaml('tests.patch', testPatch, writing), base };
  return { ...place, brings: 'workspace', patch, restored: nonEmptyList(restored) };
}

function readingYaml(reading: TestReading, writing: Writing): Record<string, unknown> {
  switch (reading.kind) {
    case 'reward-files':
      return { rewards: { json: reading.json, text: reading.text } };
    case 'printed-tests':
      return { prints: reading.parser };
    case 'named-tests': {
      const { parser, report, failToPass, passToPass } = reading;
      const names = (list: string[], file: string) =>
        list.length <= inline.names && list.join('').length <= inline.characters
          ? list
          : fileYaml(file, `${JSON.stringify(list, undefined, 2)}\n`, writing);
      return {
        named: given({
          parser,
          report,
          failToPass: names(failToPass, 'fail-to-pass.json'),
          passToPass: passToPass.length > 0 ? names(passToPass, 'pass-to-pass.json') : undefined,
        }),
      };
    }
  }
}

export function oracleYaml(oracle: CaseOracle, writing: Writing): Record<string, unknown> {
  const { files, command, env } = oracle;
  refuseOthers(oracle, ['files', 'command', 'env'], 'solution.');
  const tops = files.map(({ path }) => `/${path.split('/')[1]}`);
  return given({ command, folders: foldersYaml(files, tops, 'solution', writing), env: nonEmpty(env) });
}

/** Each folder of the sandbox with the folder of the case that has its files. */
function foldersYaml(
  files: readonly PlacedFile[],
  roots: readonly string[],
  name: string,
  { put }: Writing,
): Record<string, string> | undefined {
  const distinct = [...new Set(roots)];
  const folders: Record<string, string> = {};
  const left = new Set(files);
  for (const root of distinct) {
    const below = files.filter((file) => left.has(file) && file.path.startsWith(`${root}/`));
    if (below.length === 0) continue;
    for (const file of below) left.delete(file);
    const entries = below.map((file) => ({ ...file, path: file.path.slice(root.length + 1) }));
    const count = Object.keys(folders).length + 1;
    folders[root] = put(count === 1 ? name : `${name}-${count}`, entries);
  }
  const [other] = left;
  if (other) throw new NotCarried(`it puts a file at ${other.path}`);
  return nonEmpty(folders);
}

/** What the rewards of a trial must reach. */
export function thresholdYaml({ default: usualThreshold, byName, required }: Thresholds): unknown {
  if (required || usualThreshold === undefined) throw new NotCarried('its thresholds are those of a step');
  const names = nonEmpty(byName);
  if (names && usualThreshold !== 1)
    throw new NotCarried('its thresholds are by name, with a default other than 1');
  return names ?? (usualThreshold === 1 ? undefined : usualThreshold);
}

/** What the rewards of a step must reach for the next one to run. */
export function stepThresholdYaml({ default: usual, byName, required }: Thresholds): unknown {
  if (!required || usual !== undefined) throw new NotCarried('the thresholds of a step are those of a trial');
  return nonEmpty(byName);
}
