import { describe, expect, test } from 'vitest';
import { openFlakyService } from './flaky-service.ts';
import { offsite, start } from './offsite.ts';
import { openPlace } from './place.ts';

const cases = [{ id: 'one', verify: 'true' }];

describe.concurrent('offsite run', () => {
  test('says where the service is that does not answer, and exits 3', async () => {
    using place = openPlace();
    const env = { OFFSITE_URL: 'http://127.0.0.1:9', OFFSITE_API_KEY: 'key-12345678' };
    const { exitCode, stdout, stderr } = await offsite(place, ['run', place.suite({ cases })], { env });
    expect([exitCode, stdout]).toEqual([3, '']);
    expect(stderr).toMatch(/error: evals\.start.*cannot connect to http:\/\/127\.0\.0\.1:9/);
    expect(stderr).toContain('Is the service running there?');
  });

  test('says that the key was refused, without showing it, and exits 2', async () => {
    using place = openPlace();
    await using service = await openFlakyService(place);
    const env = { ...service.env, OFFSITE_API_KEY: 'key-of-somebody-else' };
    const { exitCode, stdout, stderr } = await offsite(place, ['run', place.suite({ cases })], { env });
    expect([exitCode, stdout]).toEqual([2, '']);
    expect(stderr).toContain('401 Unauthorized');
    expect(stderr).toContain('Check the API key');
    expect(stderr).not.toContain('key-of-somebody-else');
  });

  test('says which variable holds no key, and exits 2', async () => {
    using place = openPlace();
    const suite = place.suite({
      cases,
      config: { service: { url: 'http://127.0.0.1:9', apiKeyEnv: 'EVAL_KEY' } },
    });
    const { exitCode, stderr } = await offsite(place, ['run', suite]);
    expect(exitCode).toBe(2);
    expect(stderr).toContain('EVAL_KEY holds no API key');
  });

  test('keeps results that the service does not take and exits 3; offsite data outbox lists and sends them', async () => {
    using place = openPlace();
    await using service = await openFlakyService(place);
    const { env } = service;
    service.down.add('evals.reportTrial');
    const run = await offsite(place, ['run', place.suite({ cases }), '--json'], { env });
    expect(run.exitCode).toBe(3);
    expect(JSON.parse(run.stdout)).toMatchObject({ passed: 1, unreported: 1 });
    expect(run.stderr).toContain('not reported yet (queued)');
    expect(run.stderr).toContain('the service does not show 1 result yet; kept in');

    const listed = await offsite(place, ['data', 'outbox', '--json'], { env });
    expect(JSON.parse(listed.stdout)).toMatchObject([
      { service: env.OFFSITE_URL, ordinal: 0, state: 'queued', answer: expect.stringContaining('503') },
    ]);
    expect(listed.exitCode).toBe(0);

    service.down.clear();
    const sent = await offsite(place, ['data', 'outbox', 'send'], { env });
    expect(sent).toMatchObject({ exitCode: 0, stdout: 'nothing waits to be reported\n' });
    expect(sent.stderr).toContain('reported 1 of 1 results');
    expect(await service.ask('evals.runs.list', { caseId: 'one' })).toMatchObject({
      runs: [{ status: 'completed', trials: [{ status: 'reported' }] }],
    });
  });

  test('runs all others where no trial can be made of what the service says of one run, names it, and exits 3', async () => {
    using place = openPlace();
    await using service = await openFlakyService(place);
    service.alter = (_, body) => body.replace('"broken on its way"', '{"not": ["a", "text"]}');
    const broken = { id: 'two', verify: 'broken on its way' };
    const { exitCode, stderr } = await offsite(place, ['run', place.suite({ cases: [broken, ...cases] })], {
      env: service.env,
    });
    expect(exitCode).toBe(3);
    expect(stderr).toMatch(/two: its trials cannot run: the setup of run \S+ is not as documented: verify: /);
    expect(stderr).toMatch(/✓ one/);
    expect(await service.ask('evals.runs.list', { caseId: 'one' })).toMatchObject({
      runs: [{ trials: [{ status: 'reported' }] }],
    });
  });

  test('interrupted while the service is down keeps the result, says so, and the next run reports it', async () => {
    using place = openPlace();
    await using service = await openFlakyService(place);
    const { env } = service;
    service.down.add('evals.reportTrial');
    const running = start(place, ['run', place.suite({ cases })], { env });
    await running.printed(/✓ one/);
    running.kill('SIGINT');
    const interrupted = await running.ended;
    expect(interrupted.exitCode).toBe(130);
    expect(interrupted.stderr).toContain('1 result kept in');

    service.down.clear();
    const next = await offsite(place, ['run', place.suite({ cases: [{ id: 'two', verify: 'true' }] })], {
      env,
    });
    expect(next.exitCode).toBe(0);
    expect(next.stderr).toContain('reported 1 of 1 results that were queued');
    expect(await service.ask('evals.runs.list', { caseId: 'one' })).toMatchObject({
      runs: [{ trials: [{ status: 'reported' }] }],
    });
  });
});
