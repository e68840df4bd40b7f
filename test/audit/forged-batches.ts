import type { TrialRecord } from '../../src/record/trial-record.ts';
import type { Forger } from './forger.ts';
import { edited, exchanged, type Forgery, first } from './forgery.ts';

/** Trials that were dropped, added or swapped, and edits that agree with their own report. */
export const forgedBatches: Forgery[] = [
  // Which trials there are
  [
    'the name of another suite',
    'consistent',
    'batch suite',
    (f) => void f.database.exec("UPDATE batches SET suite = 'a harder one'"),
  ],
  ['a failed trial dropped', 'consistent', 'batch wrong/bash#1', (f) => f.drop('wrong#1')],
  [
    'a run dropped',
    'consistent',
    'batch wrong/bash',
    (f) => {
      const { run } = f.row('wrong#0');
      for (const name of ['wrong#0', 'wrong#1']) f.drop(name);
      f.database.prepare('DELETE FROM runs WHERE key = ?').run(run);
    },
  ],
  ['a trial added', 'consistent', 'batch count/bash#2', (f) => f.copy('count#0', 2)],
  [
    'a good trial in place of a bad one',
    'consistent',
    'batch sandboxId of count/bash#1',
    (f) => {
      f.editAll('count#1', (record) =>
        Object.assign(record, f.record('count#0'), { subject: record.subject }),
      );
    },
  ],
  ['two trials swapped', 'consistent', 'count#0 subject.ordinal', (f) => f.swap('count#0', 'count#1')],
  [
    'a case of another definition',
    'consistent',
    'batch count',
    (f) =>
      f.editPlan(({ cases }) => {
        first(cases).request.id = 'another';
      }),
  ],
  // By an adversary's eye: each agrees with its own report
  [
    'a failed check left out',
    'consistent',
    'wrong#0 verifySteps',
    (f) => {
      f.editAll('wrong#0', (record) => {
        record.verifySteps = record.verifySteps?.filter(({ exitCode }) => exitCode === 0);
        record.verdict = 'passed';
      });
    },
  ],
  [
    'a failed check in place of which an easier one passed',
    'consistent',
    'wrong#0 verifySteps[1].command',
    (f) => {
      f.editAll('wrong#0', (record) => {
        for (const step of record.verifySteps ?? [])
          Object.assign(step, { exitCode: 0, command: step.command.replace('9', '2') });
        record.verdict = 'passed';
      });
    },
  ],
  edited(
    'the exchanges in another order',
    'count#0',
    'models.exchanges[1]',
    ({ models }) => void models?.exchanges.reverse(),
  ),
  edited(
    'the times of two exchanges swapped',
    'count#0',
    'derivedTrajectory[0].startedAtMillis',
    ({ models }) => {
      const [one, , other] = models?.exchanges ?? [];
      if (!one || !other) throw new Error('it asked its model less than three times');
      const { startedAt, firstByteAt, finishedAt } = one;
      for (const name of ['startedAt', 'firstByteAt', 'finishedAt'] as const)
        Object.assign(one, { [name]: other[name] });
      Object.assign(other, { startedAt, firstByteAt, finishedAt });
    },
  ),
  exchanged(
    'tokens that are said to come from the cache, with their sum',
    'count#0',
    'models.exchanges[2].usage.cacheReadTokens',
    (exchange, { usage: sums }) => {
      for (const usage of [exchange.usage, first(sums).usage]) {
        usage.inputTokens = (usage.inputTokens ?? 0) - 1;
        usage.cacheReadTokens = (usage.cacheReadTokens ?? 0) + 1;
      }
    },
  ),
  edited(
    'a judge’s score that its validation did not get',
    'reply#0',
    'validations[1].judgment.score',
    ({ judgments }) => {
      first(judgments).score = 0.95;
    },
  ),
  edited('the judgments left out', 'reply#0', 'validations[1].judgment', (record) => {
    delete record.judgments;
  }),
  [
    'an attempt left out',
    'consistent',
    'count#0 attempts[0].number',
    (f) => {
      const { key } = f.row('count#0');
      f.database.prepare('UPDATE attempts SET number = 2 WHERE trial = ?').run(key);
      f.editReport('count#0', ({ events }) => {
        for (const event of events)
          if (event._tag === 'Started')
            Object.assign(event, { sessionId: String(event.sessionId).replace(/1$/, '2') });
      });
    },
  ],
  edited('a model that is said to have been asked unseen', 'count#0', 'modelUnmeasured', (record) => {
    record.modelUnmeasured = true;
  }),
  edited('a definition whose short hashes are all the same', 'count#0', 'definition', (record) => {
    record.definition = '0'.repeat(64);
  }),
  // What was sent is what it was: the record that it names commits to each part
  ...(
    [
      ['workspace', ({ left }, f) => Object.assign(left ?? {}, f.record('wrong#0').left)],
      [
        'exchange',
        ({ models }, f) => Object.assign(first(models?.exchanges), { responseBody: f.put('another answer') }),
      ],
      [
        'artifact',
        ({ artifacts }, f) => Object.assign(first(artifacts), { sha256: f.put('another'), byteSize: 7 }),
      ],
      [
        'output of a check',
        ({ verifySteps }) => Object.assign(first(verifySteps), { output: 'all is well' }),
      ],
      ['definition', (record) => Object.assign(record, { definition: '0'.repeat(64) })],
    ] satisfies [string, (record: TrialRecord, forger: Forger) => void][]
  ).map(
    ([part, change]): Forgery => [
      `another ${part}, after the report was sent`,
      'intact',
      'count#0 report.outcome.artifacts',
      (f) => void f.edit('count#0', (record) => change(record, f)),
    ],
  ),
];
