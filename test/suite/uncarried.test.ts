import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Case } from '../../src/contract/definition.ts';
import { loadConfig } from '../../src/suite/load-config.ts';
import { loadSuite } from '../../src/suite/load-suite.ts';
import { noExtras } from '../../src/suite/plan.ts';
import { uncarried } from '../../src/suite/uncarried.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'offsite-uncarried-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("environments and the number of a user's messages are named with their places", () => {
  const file = join(folder, 'suite.yaml');
  writeFileSync(
    file,
    `suite: { id: small, prompt: Do it. }
trials: 1
environment: { image: "node:24" }
variants: [{ name: worker, model: small, harness: bash, userModel: person }]
cases:
  - id: one
    environment: { workdir: /app }
    user: { kind: simulated, goal: A greeting., prompt: Be polite., maxTurns: 3 }
    verify: "true"
`,
  );
  const places = (isSelected: boolean) =>
    uncarried(file, undefined, () => isSelected).map(({ line, path }) => [line, path]);
  expect(places(true)).toEqual([
    [3, 'environment'],
    [4, 'variants[0].userModel'],
    [7, 'cases[0].environment'],
    [8, 'cases[0].user.maxTurns'],
  ]);
  expect(places(false)).toHaveLength(3);
});

test.each<[string, Partial<Case>, boolean]>([
  ['$name in verify', { verify: 'grep -q "$who" out.txt' }, true],
  ['a default in prepare', { prepare: { name: 'prepare', source: `echo "$\{who:-}" > in.txt` } }, true],
  ['the environment of Node', { verify: `node -e 'process.exit(process.env["who"] ? 0 : 1)'` }, true],
  ['the environment of Python', { verify: `python3 -c 'import os; print(os.environ.get("who"))'` }, true],
  ['printenv', { verify: 'printenv who' }, true],
  ['arithmetic', { verify: 'test $((who + 1)) = 1' }, true],
  ["a validator's variables", validator('const { who } = variables;'), true],
  ["a validator's file", validator('', 'import os\nprint(os.getenv("who"))'), true],
  ['a check', validator('', '{ "file": "{\\u007b who }}", "absent": true }'), true],
  ['{{name}} alone', { verify: '#!/usr/bin/env bash\ngrep -q "{{who}}" out.txt && echo $whole' }, false],
  ['{{name}} beside an environment', { verify: 'X="{{ who }}" node -e "process.env.X"' }, false],
  ['another word', { verify: 'cat out.txt # who' }, false],
])('a variable that may be read is refused for daemons: %s', (_, parts, isRefused) => {
  const file = join(folder, 'variables.yaml');
  writeFileSync(
    file,
    `suite: { id: small, prompt: Do it. }
trials: 1
variants: [{ model: small, harness: bash }]
cases:
  - id: one
    variables: { file: out.txt, who: world }
    verify: "true"
`,
  );
  const request = { id: 'one', name: 'one', variables: { file: 'out.txt', who: 'world' }, ...parts };
  const found = uncarried(file, {}, () => true, [{ request, local: noExtras }]);
  expect(found.map(({ line, path }) => [line, path])).toEqual(
    isRefused ? [[6, 'cases[0].variables.who']] : [],
  );
  expect(uncarried(file, {}, () => true)).toEqual([]);
});

function validator(source: string, content = ''): Partial<Case> {
  return { validator: { name: 'v', source, sourceFiles: [{ path: 'beside', content }] } };
}

test('variables of a case with checks are refused for daemons only where its checks need them', () => {
  const file = join(folder, 'checks.yaml');
  writeFileSync(
    file,
    `suite: { id: small, prompt: Do it. }
trials: 1
variants: [{ model: none, harness: command, profile: worker }]
cases:
  - id: one
    variables: { path: out.txt, run: fast, gone: old.txt, who: world }
    prepare: touch {{path}} {{run}}
    checks: [{ file: "{{gone}}", absent: true }, { run: 'echo "$who"', contains: world }]
`,
  );
  writeFileSync(join(folder, 'offsite.yaml'), 'profiles: { worker: { run: "true" } }\n');
  const plan = loadSuite(file, loadConfig({ suiteFolder: folder, env: {} }), [
    { name: 'command', wires: [], continues: false, mcp: [], limits: [], runsScript: true },
  ]);
  const found = uncarried(file, {}, () => true, plan.cases);
  expect(found.map(({ path }) => path)).toEqual([
    'variants[0].profile',
    'cases[0].variables.gone',
    'cases[0].variables.who',
  ]);
  expect(found[0]?.message).toContain('daemon.profiles: { command: worker }');
  const known = uncarried(file, { command: 'worker' }, () => true).map(({ path }) => path);
  expect(known, 'a profile that runs of the harness get anyway').toEqual([]);
});
