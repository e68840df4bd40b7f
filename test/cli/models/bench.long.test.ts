import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { serverOf } from '../../gateway/probe/model-servers.ts';
import { json } from '../../gateway/test-upstream.ts';
import { start } from '../offsite.ts';
import { openPlace, type Place } from '../place.ts';
import { modelsIn } from './models-in-process.ts';
import { slowModel } from './slow-model.ts';

function placeOf({ port }: { port: number }, model: Record<string, unknown> = {}): Place {
  const place = openPlace();
  const mine = { wire: 'openai-chat', baseUrl: `http://127.0.0.1:${port}/v1`, ...model };
  place.write('offsite.yaml', stringify({ models: { mine } }));
  return place;
}

describe('models bench', () => {
  test('finds the slots of a server that lets requests wait', async () => {
    // Long answers: a slot that waits for the next request of a busy machine hardly counts.
    await using server = await slowModel({ slots: 2, ms: 500 });
    using place = placeOf(server);
    const args = [
      'bench',
      'mine',
      '--parallel',
      '4,1,2,8',
      '--requests',
      '16',
      '--output-tokens',
      '8',
      '--json',
    ];
    const { exitCode, stdout, stderr } = await modelsIn(place, args);
    expect(exitCode).toBe(0);
    const { levels, recommendation, used, interrupted } = JSON.parse(stdout);
    expect(levels.map(({ parallel }: { parallel: number }) => parallel)).toEqual([1, 2, 4, 8]);
    expect(levels[1].tokensPerSecond).toBeGreaterThan(1.1 * levels[0].tokensPerSecond);
    expect(recommendation.maxParallel).toBe(2);
    expect(recommendation.why).toMatch(/from 2 to 4, throughput|at 4, an answer takes/);
    expect(server.most()).toBe(8);
    expect(used).toMatchObject({ requests: 65, outputTokens: 65 * 8, unreported: 0 });
    expect({ interrupted, levels }).toMatchObject({
      interrupted: false,
      levels: Array(4).fill({ succeeded: 16, limited: 0 }),
    });
    expect(stderr).toMatch(/^64 requests: about 32\.8k tokens in, up to 512 out$/m);
  });

  test('stops where the server answers 429, does not try again, and tells the costs before', async () => {
    await using server = await slowModel({ slots: 4, limit: 3 });
    using place = placeOf(server, {
      maxParallel: 8,
      prices: { date: '2026-01-15', input: 1000, output: 1000 },
    });
    const args = ['bench', 'mine', '--parallel', '1,2,6', '--requests', '6', '--output-tokens', '8'];
    const { exitCode, stdout, stderr } = await modelsIn(place, args);
    expect(exitCode).toBe(0);
    expect(stderr).toMatch(/^18 requests: .*, up to 9\.\d\d USD$/m);
    expect(stdout).toMatch(
      /^recommended: maxParallel: 2 \(it is set to 8\), because at 6, \d of 6 requests were refused with 429$/m,
    );
    expect(stdout).toMatch(/^ +1 .*█+$/m);
    expect(server.received).toHaveLength(1 + 18);
  });

  test('says that throughput still grows', async () => {
    await using server = await slowModel({ slots: 8 });
    using place = placeOf(server);
    const args = ['bench', 'mine', '--parallel', '1,2', '--requests', '8'];
    const { exitCode, stdout } = await modelsIn(place, args);
    expect({ exitCode, stdout }).toEqual({
      exitCode: 0,
      stdout: expect.stringContaining('throughput still grows at 2'),
    });
  });

  test('counts pieces where the server does not tell its tokens', async () => {
    const chunk = (delta: object, finish_reason: string | null = null) =>
      `data: ${JSON.stringify({ id: 'c', model: 'm', choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
    await using server = await serverOf({
      'POST /v1/chat/completions': (response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.end(
          `${chunk({ content: 'a ' }) + chunk({ content: 'b' }) + chunk({}, 'stop')}data: [DONE]\n\n`,
        );
      },
    });
    using place = placeOf(server);
    const { stdout } = await modelsIn(place, ['bench', 'mine', '--parallel', '1', '--json']);
    expect(JSON.parse(stdout)).toMatchObject({
      levels: [{ estimated: true, succeeded: 3 }],
      used: { unreported: 4 },
    });
  });

  test.each([
    [401, 'apiKeyEnv'],
    [404, 'baseUrl'],
  ])('exits with 3 and a hint if the first request is answered with %s', async (status, hint) => {
    await using server = await serverOf({}, json(status, { error: { message: 'no' } }));
    using place = placeOf(server);
    const { exitCode, stdout, stderr } = await modelsIn(place, ['bench', 'mine']);
    expect({ exitCode, stdout, stderr }).toEqual({
      exitCode: 3,
      stdout: '',
      stderr: expect.stringContaining(hint),
    });
    expect(server.received).toHaveLength(1);
  });

  test('exits with 2 for a model that is not configured', async () => {
    using place = placeOf({ port: 1 });
    expect(await modelsIn(place, ['bench', 'other'])).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('mine'),
    });
  });

  test('prints what was measured until Ctrl-C', async () => {
    await using server = await slowModel({ slots: 1, ms: 40 });
    using place = placeOf(server);
    const config = ['--config', join(place.folder, 'project', 'offsite.yaml')];
    const args = ['models', 'bench', 'mine', '--parallel', '1,500', '--requests', '20', ...config];
    const running = start(place, args);
    await running.printed(/^parallel 1: /m);
    running.kill('SIGINT');
    const { exitCode, stdout, stderr } = await running.ended;
    expect(exitCode).toBe(130);
    expect(stderr).toContain('what was measured follows');
    expect(stdout).toMatch(/^ +1 +[\d.]+/m);
    expect(stdout).not.toMatch(/^ +500 /m);
  });
});
