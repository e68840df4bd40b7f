import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Forger } from '../audit/forger.ts';
import { offsite, type Running, start } from '../cli/offsite.ts';
import { openPlace, type Place } from '../cli/place.ts';

const key = 'ofs_a-key-that-may-do-all';

/** A batch that ran on one machine, reported to `offsite serve` on another one. */
let place: Place;
let serving: Running;
let url: string;

beforeAll(async () => {
  place = openPlace();
  serving = start(place, ['serve', '--port', '0', '--quiet', '--no-executor'], {
    dataFolder: join(place.folder, 'service'),
    env: { OFFSITE_API_KEY: key },
  });
  url = (await serving.printed(/http:\S+?(?=;)/))[0];
  const cases = [
    { id: 'good', variables: { act: 'echo hi > a.txt' }, verify: 'grep hi a.txt' },
    { id: 'bad', variables: { act: 'echo no > a.txt' }, verify: 'grep hi a.txt' },
  ];
  const ran = await offsite(place, ['run', place.suite({ cases })], { env: own() });
  if (ran.exitCode !== 0) throw new Error(ran.stdout + ran.stderr);
});

afterAll(async () => {
  serving?.kill('SIGTERM');
  await serving?.ended;
  place?.[Symbol.dispose]();
});

const own = () => ({ OFFSITE_API_KEY: key, OFFSITE_URL: url });

async function ask(operation: string, body: object, at = url): Promise<unknown> {
  const answer = await fetch(`${at}/v1/${operation}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return answer.json();
}

/** Sends the evidence of a data folder as its owner does. By case: the level, or why there is none. */
async function sent(dataFolder: string): Promise<Record<string, string>> {
  const file = join(place.folder, 'evidence.tar.zst');
  await offsite(place, ['export', '--evidence', file], { dataFolder });
  const ended = await offsite(place, ['service', 'evidence', file, '--json'], { dataFolder, env: own() });
  const { trials } = JSON.parse(ended.stdout || expect.fail(ended.stderr)) as {
    trials: { id: string; level?: string; reason?: string }[];
  };
  expect(ended.exitCode).toBe(trials.every(({ level }) => level) ? 0 : 1);
  return Object.fromEntries(trials.map(({ id, level, reason }) => [caseOf(id), level ?? reason ?? '']));
}

const caseOf = (run: string) => (run.endsWith('_0') ? 'good' : 'bad');

/** Sends the evidence of a copy of the data folder that its owner has edited. */
async function forged(forge: (forger: Forger) => void): Promise<Record<string, string>> {
  const folder = join(place.folder, 'forged');
  {
    using forger = new Forger(place.dataFolder, folder);
    forge(forger);
  }
  return sent(folder);
}

test('evidence that differs from what the service has marks nothing', async () => {
  const editedRecord = await forged((f) =>
    f.editAll('bad#0', (record) => {
      record.verdict = 'passed';
    }),
  );
  expect(editedRecord).toEqual({
    good: 'consistent',
    bad: expect.stringMatching(/^the report that the service has names another record, [0-9a-f]{64}$/),
  });
  const editedReport = await forged((f) =>
    f.editReport('bad#0', ({ outcome }) => {
      outcome.passed = true;
    }),
  );
  expect(editedReport.bad).toBe('the report that the service has is not the one in the evidence');
  const loosened = await forged((f) => {
    const { setup } = f.database.prepare("SELECT setup FROM runs WHERE case_id = 'bad'").get() as {
      setup: string;
    };
    const other = f.put(f.blob(setup).toString().replaceAll('grep hi', 'grep no'));
    f.database.prepare("UPDATE runs SET setup = ? WHERE case_id = 'bad'").run(other);
  });
  expect(loosened.bad).toBe('what it was to do is not what the service asked for');
  const contradicted = await forged((f) =>
    f.database.exec("UPDATE trials SET verdict = 'passed' WHERE verdict = 'failed'"),
  );
  expect(contradicted.bad).toMatch(/expected failed, found passed/);
  // A definition that is not there leaves nothing to compare the record with.
  const undefinedBatch = await forged((f) => f.database.exec('UPDATE batches SET plan = NULL'));
  expect(undefinedBatch.bad).toMatch(/definition/);
  const [run] = await runs('bad');
  expect(await ask('evals.evidence', { id: run?.id })).toEqual({ trials: [] });
});

test('evidence of what was reported marks the trials; runs are listed as before, and have no baseline', async () => {
  const before = await runs('good');
  expect(await sent(place.dataFolder)).toEqual({ good: 'consistent', bad: 'consistent' });
  const [good] = before;
  const marks = {
    trials: [{ id: good?.id, ordinal: 0, level: 'consistent', auditedAt: expect.any(String) }],
  };
  expect(await ask('evals.evidence', { id: good?.id })).toEqual(marks);
  const shown = await offsite(place, ['service', 'evidence', String(good?.id)], { env: own() });
  expect(shown.stdout).toMatch(/#0 +consistent/);
  expect(await runs('good')).toEqual(before);
  expect(await ask('evals.baseline', { caseId: 'good' })).toEqual({ baselines: [], more: 0 });
});

test('the service of another owner, who never had the report, marks nothing', async () => {
  const other = start(place, ['serve', '--port', '0', '--quiet', '--no-executor'], {
    dataFolder: join(place.folder, 'other'),
    env: { OFFSITE_API_KEY: key },
  });
  try {
    const [there] = await other.printed(/http:\S+?(?=;)/);
    const answer = await fetch(`${there}/v1/evals.evidence`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/zstd' },
      body: readFileSync(join(place.folder, 'evidence.tar.zst')),
    });
    const { trials } = (await answer.json()) as { trials: { reason: string }[] };
    expect(trials.map(({ reason }) => reason)).toEqual(Array(2).fill('the service has no such run'));
  } finally {
    other.kill('SIGTERM');
    await other.ended;
  }
});

async function runs(caseId: string): Promise<{ id: string }[]> {
  return ((await ask('evals.runs.list', { caseId })) as { runs: { id: string }[] }).runs;
}

test('a service that runs trials grades the evidence again, and counts it for baselines if its owner says so', async () => {
  using there = openPlace();
  const dataFolder = join(there.folder, 'service');
  const config = there.write('counting.yaml', 'baselines: { audited: regraded }\n');
  const serve = async (...args: string[]) => {
    const running = start(there, ['serve', '--port', '0', '--quiet', ...args], {
      dataFolder,
      env: { OFFSITE_API_KEY: key },
    });
    return { running, url: (await running.printed(/http:\S+?(?=;)/))[0] };
  };
  const stop = async ({ running }: Awaited<ReturnType<typeof serve>>) => {
    running.kill('SIGTERM');
    await running.ended;
  };
  const baselineAt = async (url: string) => (await ask('evals.baseline', { caseId: 'good' }, url)) as object;
  const counting = await serve('--config', config);
  const env = { OFFSITE_API_KEY: key, OFFSITE_URL: counting.url };
  const file = join(there.folder, 'evidence.tar.zst');
  try {
    const verify = 'grep hi a.txt';
    const cases = [{ id: 'good', variables: { act: 'echo hi > a.txt' }, verify }];
    expect(await offsite(there, ['run', there.suite({ cases, trials: 2 })], { env })).toMatchObject({
      exitCode: 0,
    });
    expect(await baselineAt(counting.url)).toEqual({ baselines: [], more: 0 });
    await offsite(there, ['export', '--evidence', file], {});
    const sent = await offsite(there, ['service', 'evidence', file, '--json'], { env });
    const { trials } = JSON.parse(sent.stdout || expect.fail(sent.stderr));
    expect(trials).toMatchObject([{ level: 'regraded' }, { level: 'regraded' }]);
    expect(await baselineAt(counting.url)).toMatchObject({
      baselines: [{ distribution: { trials: 2, passed: 2 }, runs: [{ passed: 2 }] }],
    });
  } finally {
    await stop(counting);
  }
  // Without an executor, a second audit goes less far, and takes nothing back.
  const other = await serve('--no-executor');
  try {
    const again = { ...env, OFFSITE_URL: other.url };
    const { stdout } = await offsite(there, ['service', 'evidence', file, '--json'], { env: again });
    const why = 'it was not graded again: nothing runs trials here';
    expect(JSON.parse(stdout).trials[0]).toMatchObject({ level: 'consistent', reason: why });
    const { trials } = (await ask('evals.evidence', { id: JSON.parse(stdout).trials[0].id }, other.url)) as {
      trials: { level: string }[];
    };
    expect(trials.map(({ level }) => level)).toEqual(['regraded', 'regraded']);
    expect(await baselineAt(other.url)).toEqual({ baselines: [], more: 0 });
  } finally {
    await stop(other);
  }
});
