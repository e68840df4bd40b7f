import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
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
    uncarried(file, () => isSelected).map(({ line, path }) => [line, path]);
  expect(places(true)).toEqual([
    [3, 'environment'],
    [4, 'variants[0].userModel'],
    [7, 'cases[0].environment'],
    [8, 'cases[0].user.maxTurns'],
  ]);
  expect(places(false)).toHaveLength(3);
});
