import { expect, test } from 'vitest';
import { offsiteHere as offsite } from './offsite.ts';
import { openPlace } from './place.ts';

test('a case that another judge of the same name graded is not compared', async () => {
  using place = openPlace();
  const judge = (score: number) =>
    place.write(
      'judge.yaml',
      JSON.stringify({ turns: [{ repeat: true, text: JSON.stringify({ reason: 'So.', score }) }] }),
    );
  const rubric = { rubric: 'Is it kind?', threshold: 0.7, model: 'kind' };
  const suite = place.suite({
    cases: [
      { id: 'judged', verify: 'test -f work', judge: rubric, variables: { act: 'echo kind > work' } },
      { id: 'plain', verify: 'test -f work', variables: { act: 'echo kind > work' } },
    ],
    config: { models: { kind: { scripted: 'judge.yaml' } } },
  });
  judge(0.2);
  const first = await offsite(place, ['run', suite]);
  expect(first.exitCode, first.stderr).toBe(0);
  expect(await offsite(place, ['run', suite])).toMatchObject({ exitCode: 0 });
  const same = await offsite(place, ['compare']);
  expect(same.stdout).not.toContain('Not compared');
  judge(0.9);
  expect(await offsite(place, ['run', suite])).toMatchObject({ exitCode: 0 });
  const other = await offsite(place, ['compare']);
  expect(other.stdout, other.stderr).toContain(
    'Not compared, since not all trials ask and check the same: 1 case: judged (judge kind)',
  );
});
