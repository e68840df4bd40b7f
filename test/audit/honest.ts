import { offsite } from '../cli/offsite.ts';
import { openPlace, type Place } from '../cli/place.ts';

/** Two trials each: one case passes, one fails, one has a validator that asks a judge. */
const cases = [
  {
    id: 'count',
    variables: { task: 'Count the words' },
    verify: 'test -s count.txt\ntest "$(cat count.txt)" -eq 9',
  },
  {
    id: 'wrong',
    variables: { task: 'Count the lines' },
    verify: 'test -s count.txt\ntest "$(cat count.txt)" -eq 9',
  },
  {
    id: 'reply',
    variables: { task: 'Write a reply' },
    validator: {
      source: [
        "import { validate } from 'offsite/validator';",
        "validate('it is there', async ({ read }) => { if (!(await read('reply.txt'))) throw new Error('none'); });",
        "validate('it is kind', async ({ read, judge }) => {",
        "  await judge({ rubric: 'It is kind.', material: await read('reply.txt'), threshold: 0.7 });",
        '});',
      ].join('\n'),
    },
  },
].map((one) => ({
  prepare: "printf 'one two three four\\nfive six seven eight nine\\n' > text.txt",
  ...one,
}));

const script = `turns:
  - when: { anyUser: Count the words }
    run: wc -w < text.txt > count.txt
  - when: { anyUser: Count the words }
    run: cat count.txt
  - when: { anyUser: Count the lines }
    run: wc -l < text.txt > count.txt
  - when: { anyUser: Count the lines }
    run: test -e missing.txt
  - when: { anyUser: Write a reply }
    run: echo 'We are sorry.' > reply.txt
  - text: Done.
otherwise: A rehearsal
`;
const judge = `turns:
  - when: { user: We are sorry }
    repeat: true
    text: '{"reason": "It says sorry.", "score": 0.9}'
otherwise: '{"reason": "There is no reply.", "score": 0}'
`;

/** A real batch whose models were recorded, in the data folder of the place. */
export async function honestBatch(): Promise<Place> {
  const place = openPlace();
  place.write('agent.yaml', script);
  place.write('judge.yaml', judge);
  const prices = { date: '2026-01-01', input: 1, output: 5 };
  const file = place.suite({
    cases,
    trials: 2,
    judges: ['judge'],
    variants: [{ name: 'bash', model: 'agent', harness: 'bash' }],
    config: {
      models: {
        agent: { scripted: 'agent.yaml', record: 'full', prices },
        judge: { scripted: 'judge.yaml', record: 'full' },
      },
    },
  });
  const { readFileSync, writeFileSync } = await import('node:fs');
  writeFileSync(file, readFileSync(file, 'utf8').replace('prompt: Do it.', 'prompt: "{{task}}"'));
  const ran = await offsite(place, ['run', file, '--json']);
  const { passed, failed } = JSON.parse(ran.stdout || '{}');
  if (passed !== 4 || failed !== 2)
    throw new Error(`the batch is not as it should be: ${ran.stdout}${ran.stderr}`);
  return place;
}
