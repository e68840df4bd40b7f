import { expect, test } from 'vitest';
import { bench, sharedBench } from './shared-bench.ts';
import { validator } from './trial-bench.ts';

sharedBench();

test('the strict profile runs a whole trial as its user, who may write the workspace and little else', async () => {
  const result = await bench.trial(
    'echo changed > prepared\nid -u\ntouch /etc/forbidden',
    {
      prepare: 'git init -q . && echo prepared > prepared',
      verify: 'grep changed prepared\ngrep -q "CapEff:.0000000000000000" /proc/self/status',
      validator: validator(`
        import { validate } from 'offsite/validator';
        validate('runs', async ({ run }) => (await run('id', ['-u'])).stdout);
      `),
    },
    { security: 'strict', user: '1000' },
  );
  expect(result).toMatchObject({
    verdict: 'passed',
    filesChanged: ['prepared'],
    trajectory: [{ exitCode: 0 }, { output: '1000\n' }, { exitCode: 1 }],
    validations: [{ output: { text: '1000\n' } }],
  });
});
