import { expect, test } from 'vitest';
import { stringify } from 'yaml';
import { offsiteHere as offsite } from './offsite.ts';
import { openPlace } from './place.ts';

const validator = `import { validate } from 'offsite/validator';
validate('it is polite', async ({ judge }) => {
  await judge({ rubric: 'Is it polite?', material: 'Good day.', threshold: 0.5 });
});
`;

test('a suite with a judge is rehearsed without its models, and what was not tried is said', async () => {
  using place = openPlace();
  place.write('validator.mjs', validator);
  const wire = { wire: 'openai-chat', baseUrl: 'http://127.0.0.1:9/v1' };
  const models = { agent: { ...wire, apiKeyEnv: 'AGENT_KEY' }, judge: wire };
  place.write('offsite.yaml', stringify({ models, sandboxes: { local: { memory: '256m' } } }));
  const cases = [{ id: 'polite', validator: { file: 'validator.mjs' } }];
  const suite = { suite: { id: 'small', prompt: 'Do it.' }, judges: ['judge'], cases };
  const variants = [{ name: 'own', model: 'agent', harness: 'bash' }];
  const file = place.write('suite.yaml', stringify({ ...suite, variants }));

  const { stdout, stderr, exitCode } = await offsite(place, ['run', file, '--dry-run']);
  expect(stdout, stderr).toMatch(/polite · own +1 +0 +0/);
  expect(exitCode).toBe(0);
  expect(stderr).toMatch(
    /^rehearsed: \d+ trials? went through .* No model did any work\. Judges that were asked gave full marks; what a validator asks after a check that failed was not tried\.$/m,
  );
  expect(stderr).toContain(
    'this dry run did not try models (agent, judge): agents did nothing, judges gave full marks or the first choice; keys (AGENT_KEY)',
  );
});

test('a threshold does not fail a dry run, in which no model did any work, and that is said', async () => {
  using place = openPlace();
  const models = { agent: { wire: 'openai-chat', baseUrl: 'http://127.0.0.1:9/v1' } };
  place.write('offsite.yaml', stringify({ models, sandboxes: { local: { memory: '256m' } } }));
  const cases = [{ id: 'written', verify: 'test -s written' }];
  const suite = { suite: { id: 'small', prompt: 'Do it.' }, cases };
  const variants = [{ name: 'own', model: 'agent', harness: 'bash' }];
  const file = place.write('suite.yaml', stringify({ ...suite, variants }));

  const rehearsal = ['run', file, '--dry-run', '--fail-under', '0.8'];
  const { stdout, stderr, exitCode } = await offsite(place, rehearsal);
  expect(stdout, stderr).toMatch(/written · own +0 +1 +0/);
  expect(stderr).toMatch(/this dry run did not try .*; --fail-under$/m);
  expect(exitCode).toBe(0);
});

test('a script that no run could use is refused by a dry run and by check, with all of its mistakes', async () => {
  using place = openPlace();
  place.write('validator.mjs', validator);
  const turns = [
    { when: { user: { matches: '(?i)yes' } }, text: 'a' },
    { when: { user: { matches: '(' } }, text: 'b' },
  ];
  const script = place.write('judge.yaml', stringify({ turns }));
  const models = { agent: { scripted: 'judge.yaml' }, judge: { scripted: 'judge.yaml' } };
  place.write('offsite.yaml', stringify({ models, sandboxes: { local: { memory: '256m' } } }));
  const cases = [{ id: 'polite', validator: { file: 'validator.mjs' } }];
  const suite = { suite: { id: 'small', prompt: 'Do it.' }, judges: ['judge'], cases };
  const variants = [{ name: 'own', model: 'agent', harness: 'bash' }];
  const file = place.write('suite.yaml', stringify({ ...suite, variants }));

  for (const args of [
    ['check', file],
    ['run', file, '--dry-run'],
    ['run', file],
  ]) {
    const { stderr, exitCode } = await offsite(place, args);
    expect(exitCode, stderr).toBe(2);
    const issues = stderr
      .split('\n')
      .filter((line) => line.includes('expected a JavaScript regular expression'));
    expect(issues, stderr).toHaveLength(2);
    expect(issues.every((line) => line.includes(`${script.split('/').at(-1)}:`))).toBe(true);
  }
});
