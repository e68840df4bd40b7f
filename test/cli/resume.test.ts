import { rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { runners } from '../../runners/index.ts';
import { startBatch } from '../../src/agent/start-batch.ts';
import { accessService } from '../../src/api/service-access.ts';
import { systemClock } from '../../src/base/clock.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { loadConfig } from '../../src/suite/load-config.ts';
import { loadSuite } from '../../src/suite/load-suite.ts';
import { offsiteHere as offsite } from './offsite.ts';
import { openPlace, type Place } from './place.ts';

const config = {
  models: {
    told: { scripted: 'turns.yaml' },
    judge: { wire: 'openai-chat', baseUrl: 'http://127.0.0.1:1/v1', apiKeyEnv: 'JUDGE_KEY' },
  },
};
const env = { JUDGE_KEY: 'sk-judge-0123456789' };

/** A batch that was started, of which nothing has been run: its process died just then. */
async function started(place: Place, judges: string[] = ['judge']): Promise<string> {
  place.write('turns.yaml', 'turns: [{ run: "echo hello > answer" }, { text: Done. }]\n');
  place.suite({ cases: [], config });
  const suite = place.write(
    'suite.yaml',
    JSON.stringify({
      suite: { id: 's', prompt: 'Say hello.' },
      variants: [{ model: 'told', harness: 'bash', sandbox: 'local' }],
      ...(judges.length > 0 && { judges }),
      cases: [{ id: 'a', verify: 'grep -q hello answer' }],
    }),
  );
  const read = loadConfig({ named: suite.replace('suite.yaml', 'offsite.yaml'), env: {} });
  const { dataFolder } = place;
  using ledger = new Ledger(dataFolder, systemClock);
  const settings = { config: read, dataFolder, env: {}, clock: systemClock };
  await using access = await accessService({
    ...settings,
    caBundle: undefined,
    integrations: [],
    insecureHttp: undefined,
  });
  const parts = { client: access.client, ledger, clock: systemClock, service: 'embedded' };
  const plan = loadSuite(suite, read, runners);
  const { batch, lock } = await startBatch(plan, parts, new AbortController().signal);
  using _lock = lock;
  return batch.id;
}

test('without what a batch was planned with resuming says what is missing and begins nothing; with it, it goes on', async () => {
  using place = openPlace();
  const id = await started(place);

  const other = place.write('other.yaml', '');
  const bare = await offsite(place, ['resume', '--config', other]);
  expect([bare.exitCode, bare.stderr]).toEqual([
    2,
    expect.stringContaining(`batch ${id} cannot be resumed with ${other}:`),
  ]);
  expect(bare.stderr).toMatch(/told/);
  expect(bare.stderr).toMatch(/judge/);
  expect(bare.stderr).toMatch(/None of its trials started now; 0 had finished before\./);
  expect(bare.stderr).toContain(`Beside its suite is ${place.folder}/project/offsite.yaml.`);
  expect(bare.stderr).toContain(`offsite data abandon ${id}`);

  const configured = ['--config', `${place.folder}/project/offsite.yaml`];
  const keyless = await offsite(place, ['resume', ...configured]);
  expect([keyless.exitCode, keyless.stderr]).toEqual([2, expect.stringContaining('JUDGE_KEY is not set')]);
  expect(keyless.stderr).not.toMatch(/told/);
  {
    using ledger = new Ledger(place.dataFolder, systemClock);
    const [batch] = ledger.batches.open();
    expect(batch?.id).toBe(id);
    expect(ledger.outbox.pending()).toEqual([]);
  }

  const { exitCode, stdout } = await offsite(place, ['resume', id.slice(0, 12), '--json', ...configured], {
    env,
  });
  expect([exitCode, JSON.parse(stdout)]).toEqual([
    0,
    [expect.objectContaining({ batchId: id, passed: 1, void: 0 })],
  ]);
});

test('from any folder a batch is resumed with the configuration beside its suite, and where that is gone what was looked at is named', async () => {
  using place = openPlace();
  const suite = join(place.folder, 'project', 'suite.yaml');
  await started(place, []);
  await started(place, []);
  const resumed = await offsite(place, ['resume']);
  expect(resumed.exitCode, resumed.stderr).toBe(0);
  expect(resumed.stderr).toContain(`models, engine and limits from ${dirname(suite)}/offsite.yaml`);

  const id = await started(place, []);
  rmSync(dirname(suite), { recursive: true });
  const gone = await offsite(place, ['resume', id]);
  expect(gone.exitCode).toBe(2);
  expect(gone.stderr).toContain(`batch ${id} cannot be resumed without a configuration:`);
  expect(gone.stderr).toContain(`Its suite ${suite} is not there any more. No offsite.yaml is in`);
  expect(gone.stderr).toContain(`${dirname(suite)}, ${place.folder}, ${place.folder}/.config/offsite.`);
});

test('recorded and live answers never mix in a batch, and a model that has moved is told', async () => {
  using place = openPlace();
  const id = await started(place, []);
  place.write('recorded.jsonl', '');
  place.write('others.yaml', 'turns: [{ run: "echo hello > answer" }, { text: Done. }]\n');
  const configured = (model: object) => [
    '--config',
    place.write('other.yaml', JSON.stringify({ models: { told: model } })),
  ];
  const replayed = await offsite(place, ['resume', ...configured({ replay: 'recorded.jsonl' })]);
  expect([replayed.exitCode, replayed.stderr]).toEqual([
    2,
    expect.stringContaining(
      'the model told answered from turns.yaml when the batch began, and answers from recorded.jsonl now: recorded and live',
    ),
  ]);
  const moved = await offsite(place, ['resume', ...configured({ scripted: 'others.yaml' })]);
  expect(moved.exitCode, moved.stderr).toBe(0);
  expect(moved.stderr).toContain(
    `batch ${id}: the model told answered from turns.yaml when the batch began, and answers from others.yaml now`,
  );
});

test('without the configuration that names its service resuming does not say that all is done', async () => {
  using place = openPlace();
  {
    using ledger = new Ledger(place.dataFolder, systemClock);
    const service = 'https://evals.example';
    const plan = await ledger.blobs.putJson({});
    ledger.starts.add({ service, suite: 's', file: undefined, plan, lock: 'batch-1' });
  }
  const { exitCode, stderr } = await offsite(place, ['resume']);
  expect([exitCode, stderr]).toEqual([2, expect.stringContaining('https://evals.example')]);
});

test('a batch that cannot be resumed is left, and does not keep the others waiting', async () => {
  using place = openPlace();
  const keyless = await started(place);
  const other = await started(place, []);
  const configured = ['--config', `${place.folder}/project/offsite.yaml`];
  const resumed = await offsite(place, ['resume', ...configured]);
  expect(resumed.exitCode, resumed.stderr).toBe(0);
  expect(resumed.stderr).toContain(`left: batch ${keyless} cannot be resumed`);
  expect(resumed.stderr).toContain('offsite data abandon');
  expect(resumed.stdout).toContain(`batch ${other}: 1 trial finished now, 0 before`);
  // Now it is the only one.
  expect(await offsite(place, ['resume', ...configured])).toMatchObject({ exitCode: 2 });
});
