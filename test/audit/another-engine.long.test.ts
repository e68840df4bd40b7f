import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { offsite, trustOfThisMachine } from '../cli/offsite.ts';
import { openPlace, type Place } from '../cli/place.ts';
import { type OwnEngine, ownEngine } from '../engine/faults/own-engine.ts';
import { loadBaseImage } from '../engine/with-base-image.ts';

/** Milliseconds; only a hang reaches them. */
const timeout = 1_200_000;

/** Harnesses are installed on both engines. */
const certificates = await trustOfThisMachine();

// The engine of whoever audits: it has the base image, and nothing of the batch.
let other: OwnEngine;
let place: Place;
beforeAll(async () => {
  other = await ownEngine({ storageDriver: 'overlay2' });
  await other.start();
  await loadBaseImage(other.host);
  place = openPlace();
});
afterAll(async () => {
  place?.[Symbol.dispose]();
  await other?.[Symbol.asyncDispose]();
});

interface Audited {
  exitCode: number | undefined;
  whole: { state: string };
  trials: {
    caseId: string;
    variant: string;
    standing: string;
    levels: { level: string; state: string; contradictions: unknown[]; unchecked: string[] }[];
  }[];
}

/** Runs a suite here, and audits its evidence with the other engine, in another data folder. */
async function auditedElsewhere(suite: string, level: string, ...how: string[]): Promise<Audited> {
  const dataFolder = join(place.folder, `data-${Math.random()}`);
  const file = `${dataFolder}.tar.zst`;
  const ran = await offsite(place, ['run', suite, '--json'], { dataFolder, env: certificates });
  expect(ran.stdout, ran.stderr).not.toBe('');
  expect(JSON.parse(ran.stdout), ran.stdout).toMatchObject({ void: 0 });
  const exported = await offsite(place, ['export', '--evidence', file, ...how], { dataFolder });
  expect(exported.exitCode, exported.stderr).toBe(0);
  return audit(file, level);
}

async function audit(file: string, level: string): Promise<Audited> {
  const audited = await offsite(place, ['audit', file, '--level', level, '--json'], {
    dataFolder: join(place.folder, `elsewhere-${Math.random()}`),
    env: { ...certificates, DOCKER_HOST: other.host },
  });
  expect(audited.stdout, audited.stderr).not.toBe('');
  return { exitCode: audited.exitCode, ...JSON.parse(audited.stdout) };
}

function levelOf(audited: Audited, level: string): string[] {
  return audited.trials.map(({ levels }) => levels.find((one) => one.level === level)?.state ?? 'none');
}

async function imagesOf(...host: string[]): Promise<string[]> {
  const { stdout } = await execa('docker', [...host, 'images', '--all', '--quiet', '--no-trunc']);
  return stdout.split('\n').filter((id) => id !== '');
}

const example = (name: string) => fileURLToPath(new URL(`../../examples/${name}`, import.meta.url));

test('each trial of the quickstart is graded again with another engine', { timeout }, async () => {
  const audited = await auditedElsewhere(join(example('quickstart'), 'suite.yaml'), 'regraded');
  expect(audited).toMatchObject({ exitCode: 0, whole: { state: 'held' } });
  expect(levelOf(audited, 'regraded')).toEqual(Array(16).fill('held'));
});

test('each harness with a model is replayed with another engine', { timeout }, async () => {
  const folder = join(place.folder, 'harnesses');
  cpSync(example('harnesses'), folder, { recursive: true });
  const config = join(folder, 'offsite.yaml');
  const scripted = 'scripted: rehearsal.yaml';
  writeFileSync(config, readFileSync(config, 'utf8').replace(scripted, `${scripted}\n    record: full`));
  const audited = await auditedElsewhere(join(folder, 'suite.yaml'), 'replayed');
  expect(audited).toMatchObject({ exitCode: 0, whole: { state: 'held' } });
  expect(levelOf(audited, 'regraded')).toEqual(Array(14).fill('held'));
  const notReplayed = audited.trials.flatMap(({ variant, levels }) =>
    levels.flatMap((one) =>
      one.level === 'replayed' && one.state !== 'held' ? [`${variant}: ${one.state}: ${one.unchecked}`] : [],
    ),
  );
  expect(notReplayed).toEqual([
    expect.stringMatching(/^command: not reached: it asked no model/),
    expect.stringMatching(/^command: not reached: it asked no model/),
  ]);
});

test('what a Dockerfile built, and what an agent left of its sandbox, come with the evidence', {
  timeout,
}, async () => {
  place.write('made/Dockerfile', 'FROM offsite/base\nCOPY words.txt /srv/words.txt\nWORKDIR /srv\n');
  place.write('made/words.txt', 'one two three\n');
  place.write('same.sh', 'grep hi /tmp/b');
  const suite = place.suite({
    cases: [
      {
        id: 'built',
        environment: { build: { context: 'made' } },
        prepare: 'echo four >> words.txt',
        variables: { act: 'wc -w < words.txt > count.txt' },
        verify: 'test "$(cat count.txt)" -eq 4 && test "$(grep -c four words.txt)" -eq 1',
      },
      { id: 'same', variables: { act: 'echo hi > /tmp/b' }, verify: { file: 'same.sh', in: 'same' } },
    ],
  });
  const before = await imagesOf('--host', other.host);
  const without = await auditedElsewhere(suite, 'regraded');
  expect(without.exitCode).toBe(3);
  expect(levelOf(without, 'regraded')).toEqual(['not reached', 'not reached']);
  expect(JSON.stringify(without)).toContain('--include-image adds its image');

  const audited = await auditedElsewhere(suite, 'regraded', '--include-image');
  expect(levelOf(audited, 'regraded'), JSON.stringify(audited)).toEqual(['held', 'held']);
  expect(JSON.stringify(audited)).toContain('its image came with the evidence');
  // What came with the evidence is gone. Images that the other engine makes have other ids.
  const owners = new Set(await imagesOf());
  const left = (await imagesOf('--host', other.host)).filter((id) => !before.includes(id));
  expect(left.filter((id) => owners.has(id))).toEqual([]);
});
