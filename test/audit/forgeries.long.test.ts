import { generateKeyPairSync } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runners } from '../../runners/index.ts';
import { auditBatch } from '../../src/audit/audit-batch.ts';
import { systemClock } from '../../src/base/clock.ts';
import { findBatch } from '../../src/ledger/find.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import type { AuditedLevel, AuditLevel } from '../../src/record/audit.ts';
import type { TrialRecord } from '../../src/record/trial-record.ts';
import { loadConfig } from '../../src/suite/load-config.ts';
import { offsite } from '../cli/offsite.ts';
import { openPlace, type Place } from '../cli/place.ts';
import { entriesOf, statementIn, writeBundle } from '../evidence/bundle-file.ts';
import { Forger } from './forger.ts';
import { honestBatch } from './honest.ts';

let place: Place;
beforeAll(async () => {
  place = await honestBatch();
}, 300_000);
afterAll(() => place?.[Symbol.dispose]());

const config = loadConfig({ named: undefined, suiteFolder: undefined, env: {} });

async function auditIn(folder: string) {
  using ledger = new Ledger(folder, systemClock);
  return await auditBatch(
    findBatch(ledger.records, 'last'),
    {
      ...{ ledger, config, harnesses: runners, now: 0, problems: [], concurrency: 4 },
      observe: () => undefined,
    },
    AbortSignal.timeout(60_000),
  );
}

/** The first place at each level that is contradicted, with the trial; without a trial about the batch. */
async function contradictionsIn(folder: string): Promise<{ level: AuditLevel; at: string }[]> {
  const { whole, trials } = await auditIn(folder);
  const ofBatch = whole.level('consistent').contradictions.map(({ path }) => `batch ${path}`);
  return [
    ...ofBatch.map((at) => ({ level: 'consistent' as const, at })),
    ...trials.flatMap(({ trial, audit }) =>
      audit.levels.flatMap(({ level, contradictions }) =>
        contradictions.map(({ path }) => ({ level, at: `${trial.caseId}#${trial.ordinal} ${path}` })),
      ),
    ),
  ];
}

type Forgery = [name: string, level: AuditLevel, at: string, forge: (forger: Forger) => void];

const agentUsage = ({ models }: TrialRecord) => {
  const usage = models?.usage.find(({ role }) => role === 'agent')?.usage;
  if (!usage) throw new Error('it used no model');
  return usage;
};
const first = <Item>(items: readonly Item[] | undefined): Item => {
  const [item] = items ?? [];
  if (item === undefined) throw new Error('the list is empty');
  return item;
};

function madeVoid(record: TrialRecord, kind: 'infrastructure' | 'harness' | 'model'): TrialRecord {
  const cause = { kind, phase: 'harness' as const, message: 'it could not run' };
  return Object.assign(record, { verdict: 'void', cause });
}

function withoutChecks(record: TrialRecord): void {
  for (const part of ['verifySteps', 'validations', 'judgments'] as const) delete record[part];
}

/** What an owner does, the level at which it is contradicted, and where. */
const forgeries: Forgery[] = [
  // Contents
  [
    'an artifact edited',
    'intact',
    'count#0 artifacts[0]',
    (f) => f.spoil(first(f.record('count#0').artifacts).sha256),
  ],
  ['a record edited in place', 'intact', 'count#0 record', (f) => f.spoil(f.row('count#0').result)],
  ['a record deleted', 'intact', 'count#0 record', (f) => f.remove(f.row('count#0').result)],
  ['a report deleted', 'intact', 'count#0 record', (f) => f.remove(f.row('count#0').body)],
  [
    'a workspace edited',
    'intact',
    'count#0 left',
    (f) => {
      const { left } = f.record('count#0');
      if (left?.kind === 'archive') f.spoil(left.sha256, 'workspaces');
    },
  ],
  ['a workspace replaced in its file', 'intact', 'wrong#0 left', (f) => f.swapArchive('wrong#0', 'count#0')],
  [
    'a workspace replaced in the list of workspaces',
    'intact',
    'wrong#0 left.sha256',
    (f) => {
      const other = f.record('count#0').left;
      if (other?.kind !== 'archive') throw new Error('it left no archive');
      f.database
        .prepare('UPDATE workspaces SET name = ?, byte_size = ? WHERE trial = ?')
        .run(other.sha256, other.byteSize, f.row('wrong#0').key);
    },
  ],
  [
    'an answer of the model deleted',
    'intact',
    'count#0 models.exchanges[0].responseBody',
    (f) => f.remove(first(f.record('count#0').models?.exchanges).responseBody ?? ''),
  ],
  [
    'a request to the model edited',
    'intact',
    'count#0 models.exchanges[0].requestBody',
    (f) => f.spoil(first(f.record('count#0').models?.exchanges).requestBody ?? ''),
  ],
  [
    'the text of a changed file deleted',
    'intact',
    'count#0 changes[0].after',
    (f) => f.remove(first(f.record('count#0').changes).after?.content ?? ''),
  ],
  [
    'the size of an artifact',
    'intact',
    'count#0 artifacts[0].byteSize',
    (f) =>
      void f.edit('count#0', ({ artifacts }) => {
        first(artifacts).byteSize += 1;
      }),
  ],
  [
    'a field added to a report',
    'intact',
    'count#0 report.',
    (f) => f.editReport('count#0', (report) => Object.assign(report, { audited: true })),
  ],
  // Verdicts
  [
    'a verdict in lists alone',
    'consistent',
    'wrong#0 verdict',
    (f) =>
      void f.database.prepare("UPDATE trials SET verdict = 'passed' WHERE key = ?").run(f.row('wrong#0').key),
  ],
  [
    'a verdict, with its report',
    'consistent',
    'wrong#0 verdict',
    (f) =>
      f.editAll('wrong#0', (record) => {
        record.verdict = 'passed';
      }),
  ],
  [
    'a failure made void',
    'consistent',
    'wrong#0 cause',
    (f) =>
      f.editAll('wrong#0', (record) => {
        record.verdict = 'void';
      }),
  ],
  [
    'a failure made void by a harness that ended early',
    'consistent',
    'wrong#0 cause.phase',
    (f) => f.editAll('wrong#0', (record) => void madeVoid(record, 'infrastructure')),
  ],
  [
    'a failure made void by a harness that failed, without its checks',
    'consistent',
    'wrong#0 cause.kind',
    (f) => f.editAll('wrong#0', (record) => withoutChecks(madeVoid(record, 'harness'))),
  ],
  [
    'a failure made void by a model that failed, without its checks',
    'consistent',
    'wrong#0 cause.kind',
    (f) => f.editAll('wrong#0', (record) => withoutChecks(madeVoid(record, 'model'))),
  ],
  [
    'a pass with somebody at fault',
    'consistent',
    'count#0 cause',
    (f) =>
      f.editAll('count#0', (record) => {
        record.cause = { kind: 'infrastructure', phase: 'verify', message: 'none' };
      }),
  ],
  [
    'the exit code of a check, without a report',
    'consistent',
    'wrong#0 report.outcome.passed',
    (f) =>
      void f.edit('wrong#0', (record) => {
        record.verdict = 'passed';
        for (const step of record.verifySteps ?? []) step.exitCode = 0;
      }),
  ],
  [
    'a report that passed',
    'consistent',
    'wrong#0 report.outcome.passed',
    (f) =>
      f.editReport('wrong#0', ({ outcome }) => {
        outcome.passed = true;
      }),
  ],
  [
    'a judge’s score below its threshold',
    'consistent',
    'reply#0 verdict',
    (f) =>
      f.editAll('reply#0', ({ judgments }) => {
        first(judgments).score = 0.1;
      }),
  ],
  [
    'a pass of what was not run',
    'consistent',
    'wrong#0 verdict',
    (f) => f.editAll('wrong#0', (record) => Object.assign(record, { verdict: 'passed', notRun: true })),
  ],
  [
    'a later grading with another verdict than its record',
    'consistent',
    'wrong#0 gradings[0].verdict',
    (f) => f.gradeAgain('wrong#0', 'passed', { regrade: { of: f.row('wrong#0').result, notes: [] } }),
  ],
  [
    'a later grading of another trial',
    'consistent',
    'wrong#0 gradings[0].of',
    (f) => f.gradeAgain('wrong#0', 'failed', { regrade: { of: f.row('count#0').result, notes: [] } }),
  ],
  // Tokens, cost, time
  [
    'an exchange that failed, so that its tokens do not count',
    'consistent',
    'count#0 models.exchanges[2].usage',
    (f) =>
      f.editExchange('count#0', (exchange, account) => {
        f.uncount(exchange, account);
        exchange.failure = 'the client ended it';
      }),
  ],
  [
    'an exchange that was refused, so that its tokens do not count',
    'consistent',
    'count#0 models.exchanges[2].usage',
    (f) =>
      f.editExchange('count#0', (exchange, account) => {
        f.uncount(exchange, account);
        exchange.status = 500;
      }),
  ],
  [
    'an answer that is said to be a recorded one, so that it costs nothing',
    'consistent',
    'count#0 models.exchanges[2].replayed',
    (f) =>
      f.editExchange('count#0', (exchange, account) => {
        const sum = first(account.usage).usage;
        sum.costUsd = (sum.costUsd ?? 0) - (exchange.usage.costUsd ?? 0);
        exchange.usage.costUsd = 0;
        exchange.replayed = { of: 'batch_x', trial: 'count #0', number: 3, how: 'exact' };
      }),
  ],
  [
    'tokens in a report',
    'consistent',
    'count#0 report.usage.totalTokens',
    (f) =>
      f.editReport('count#0', ({ usage }) => {
        if (usage) usage.totalTokens = 1;
      }),
  ],
  [
    'tokens in the sum of a record',
    'consistent',
    'count#0 models.usage[0].usage.inputTokens',
    (f) =>
      f.editAll('count#0', (record) => {
        agentUsage(record).inputTokens = 1;
      }),
  ],
  [
    'tokens of an exchange, with its sum',
    'consistent',
    'count#0 models.exchanges[2].usage.outputTokens',
    (f) =>
      f.editExchange('count#0', ({ usage }, account) => {
        const less = (usage.outputTokens ?? 0) - 1;
        for (const one of [usage, first(account.usage).usage]) {
          one.outputTokens = (one.outputTokens ?? 0) - (usage === one ? (usage.outputTokens ?? 0) - less : 1);
        }
      }),
  ],
  [
    'the cost of an exchange, with its sum',
    'consistent',
    'count#0 models.exchanges[2].usage.costUsd',
    (f) =>
      f.editExchange('count#0', ({ usage }, account) => {
        const sum = first(account.usage).usage;
        sum.costUsd = (sum.costUsd ?? 0) - (usage.costUsd ?? 0);
        usage.costUsd = 0;
      }),
  ],
  [
    'the cost of an exchange whose answer is no longer there, with its sum',
    'consistent',
    'count#0 models.exchanges[2].usage.costUsd',
    (f) =>
      f.editExchange('count#0', (exchange, account) => {
        const sum = first(account.usage).usage;
        sum.costUsd = (sum.costUsd ?? 0) - (exchange.usage.costUsd ?? 0);
        exchange.usage.costUsd = 0;
        exchange.requestBody = undefined;
        exchange.responseBody = undefined;
      }),
  ],
  [
    'tokens below zero in an exchange whose answer is no longer there, with its sum',
    'consistent',
    'count#0 models.exchanges[2].usage.cacheReadTokens',
    (f) =>
      f.editExchange('count#0', (exchange, account) => {
        const sum = first(account.usage).usage;
        sum.cacheReadTokens = -5 + (sum.cacheReadTokens ?? 0) - (exchange.usage.cacheReadTokens ?? 0);
        exchange.usage.cacheReadTokens = -5;
        exchange.responseBody = undefined;
      }),
  ],
  [
    'another price',
    'consistent',
    'count#0 models.exchanges[0].usage.costUsd',
    (f) =>
      f.editPlan(({ variants }) => {
        first(variants).modelConfig = { ...first(variants).modelConfig, prices: { input: 9, output: 9 } };
      }),
  ],
  [
    'a request left out of the sum',
    'consistent',
    'count#0 models.usage[0].requests',
    (f) =>
      f.editAll('count#0', ({ models }) => {
        first(models?.usage).requests = 1;
      }),
  ],
  [
    'the time of the model',
    'consistent',
    'count#0 models.modelMs',
    (f) =>
      f.editAll('count#0', ({ models }) => {
        if (models) models.modelMs = 0;
      }),
  ],
  [
    'an earlier end',
    'consistent',
    'count#0 phases[',
    (f) =>
      f.editAll('count#0', (record) => {
        record.finishedAt = record.startedAt + 1;
      }),
  ],
  [
    'a phase that took less than no time',
    'consistent',
    'count#0 phases[1]',
    (f) =>
      f.editAll('count#0', ({ phases }) => {
        if (phases[1]) phases[1].durationMs = -5;
      }),
  ],
  [
    'a phase during another one',
    'consistent',
    'count#0 phases[1]',
    (f) =>
      f.editAll('count#0', ({ phases }) => {
        if (phases[0]) phases[0].durationMs += 500;
      }),
  ],
  [
    'an exchange before the trial',
    'consistent',
    'count#0 models.exchanges[2]',
    (f) =>
      f.editExchange('count#0', (exchange) => {
        exchange.startedAt -= 3_600_000;
      }),
  ],
  [
    'an attempt at another time',
    'consistent',
    'count#0 startedAt',
    (f) =>
      void f.database
        .prepare(
          'UPDATE attempts SET started_at = started_at - 9e6, ended_at = ended_at - 9e6 WHERE trial = ?',
        )
        .run(f.row('count#0').key),
  ],
  [
    'tokens in lists',
    'consistent',
    'count#0 listing.totalTokens',
    (f) =>
      void f.database
        .prepare("UPDATE trials SET listing = json_set(listing, '$.totalTokens', 1) WHERE key = ?")
        .run(f.row('count#0').key),
  ],
  // What the agent did
  [
    'a command left out',
    'consistent',
    'wrong#0 trajectory',
    (f) =>
      f.editAll('wrong#0', (record) => {
        record.trajectory = record.trajectory?.slice(0, 1);
      }),
  ],
  [
    'a command replaced',
    'consistent',
    'wrong#0 trajectory[1].command',
    (f) =>
      f.editAll('wrong#0', ({ trajectory }) => {
        if (trajectory?.[1]) trajectory[1].command = 'node check.js';
      }),
  ],
  [
    'a command in the file of the trajectory',
    'consistent',
    'count#0 .offsite/trajectory.jsonl[0].command',
    (f) => {
      const record = f.record('count#0');
      const file = record.artifacts?.find(({ path }) => path === '.offsite/trajectory.jsonl');
      const text = f
        .blob(file?.sha256 ?? '')
        .toString('utf8')
        .replace('wc -w', 'wc -x');
      const sha256 = f.put(text);
      f.edit('count#0', ({ artifacts }) =>
        Object.assign(artifacts?.find(({ path }) => path === file?.path) ?? {}, { sha256 }),
      );
      f.editReport('count#0', ({ outcome }) =>
        Object.assign(outcome.artifacts?.find(({ path }) => path === file?.path) ?? {}, { sha256 }),
      );
    },
  ],
  [
    'a command among those of the traffic',
    'consistent',
    'count#0 derivedTrajectory[0].output',
    (f) =>
      f.editAll('count#0', ({ derivedTrajectory }) => {
        first(derivedTrajectory).output = 'nine';
      }),
  ],
  [
    'an answer of the model',
    'consistent',
    'count#0 models.exchanges[2].responseBytes',
    (f) =>
      f.editExchange('count#0', (exchange) => {
        exchange.responseBody = f.put('{}');
      }),
  ],
  [
    'a request to the model',
    'consistent',
    'count#0 derivedTrajectory',
    (f) =>
      f.editExchange('count#0', (exchange, { exchanges }) => {
        const request = f
          .blob(exchange.requestBody ?? '')
          .toString('utf8')
          .replaceAll('wc -w', 'wc -x');
        exchange.requestBody = f.put(request);
        for (const each of exchanges.slice(0, 2)) {
          const body = f
            .blob(each.requestBody ?? '')
            .toString('utf8')
            .replaceAll('wc -w', 'wc -x');
          each.requestBody = f.put(body);
        }
      }),
  ],
  [
    'a file that the agent left',
    'consistent',
    'wrong#0 changes[0] count.txt',
    (f) =>
      f.editAll('wrong#0', ({ changes }) =>
        Object.assign(first(changes).after ?? {}, { content: f.put('9\n') }),
      ),
  ],
  [
    'a workspace swapped in the record',
    'consistent',
    'wrong#0 changes[0] count.txt',
    (f) => {
      const { left } = f.record('count#0');
      f.edit('wrong#0', (record) => {
        record.left = left;
      });
      if (left?.kind === 'archive')
        f.database
          .prepare('UPDATE workspaces SET name = ?, byte_size = ? WHERE trial = ?')
          .run(left.sha256, left.byteSize, f.row('wrong#0').key);
    },
  ],
  // What was asked
  [
    'another name of the variant',
    'consistent',
    'count#0 variant',
    (f) => void f.database.exec("UPDATE runs SET variant = 'a better one' WHERE case_id = 'count'"),
  ],
  [
    'another model',
    'consistent',
    'count#0 subject.model',
    (f) =>
      f.editAll('count#0', ({ subject }) => {
        if (subject) subject.model = 'a better one';
      }),
  ],
  [
    'another model in an exchange',
    'consistent',
    'count#0 models.exchanges[2].model',
    (f) =>
      f.editExchange('count#0', (exchange) => {
        exchange.model = 'a better one';
      }),
  ],
  [
    'another model that answered',
    'consistent',
    'count#0 models.exchanges[2].answeredBy',
    (f) =>
      f.editExchange('count#0', (exchange) => {
        exchange.answeredBy = 'a better one';
      }),
  ],
  [
    'another prompt',
    'consistent',
    'count#0 subject.prompt',
    (f) =>
      f.editAll('count#0', ({ subject }) => {
        if (subject) subject.prompt = 'Be good.';
      }),
  ],
  [
    'another harness',
    'consistent',
    'count#0 fingerprint.harness',
    (f) =>
      f.editAll('count#0', (record) => {
        record.harnessVersion = '99';
      }),
  ],
  [
    'the digest of an image',
    'consistent',
    'count#0 fingerprint.images',
    (f) =>
      f.editAll('count#0', ({ images }) => {
        first(images).digest = `sha256:${'0'.repeat(64)}`;
      }),
  ],
  [
    'a loosened validator in the definition',
    'consistent',
    'reply#0 setup.validator.source',
    (f) =>
      f.editPlan(({ cases }) => {
        const validator = cases.find(({ request }) => request.id === 'reply')?.request.validator;
        if (validator) validator.source = validator.source.replace('0.7', '0.1');
      }),
  ],
  [
    'a loosened validator in definition and setup',
    'consistent',
    'reply#0 fingerprint.validator',
    (f) => f.loosen('reply', '0.7', '0.1'),
  ],
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
  [
    'the exchanges in another order',
    'consistent',
    'count#0 models.exchanges[1]',
    (f) => f.editAll('count#0', ({ models }) => void models?.exchanges.reverse()),
  ],
  [
    'the times of two exchanges swapped',
    'consistent',
    'count#0 derivedTrajectory[0].startedAtMillis',
    (f) =>
      f.editAll('count#0', ({ models }) => {
        const [one, , other] = models?.exchanges ?? [];
        if (!one || !other) throw new Error('it asked its model less than three times');
        const { startedAt, firstByteAt, finishedAt } = one;
        for (const name of ['startedAt', 'firstByteAt', 'finishedAt'] as const)
          Object.assign(one, { [name]: other[name] });
        Object.assign(other, { startedAt, firstByteAt, finishedAt });
      }),
  ],
  [
    'tokens that are said to come from the cache, with their sum',
    'consistent',
    'count#0 models.exchanges[2].usage.cacheReadTokens',
    (f) =>
      f.editExchange('count#0', (exchange, { usage: sums }) => {
        for (const usage of [exchange.usage, first(sums).usage]) {
          usage.inputTokens = (usage.inputTokens ?? 0) - 1;
          usage.cacheReadTokens = (usage.cacheReadTokens ?? 0) + 1;
        }
      }),
  ],
  [
    'a judge’s score that its validation did not get',
    'consistent',
    'reply#0 validations[1].judgment.score',
    (f) =>
      f.editAll('reply#0', ({ judgments }) => {
        first(judgments).score = 0.95;
      }),
  ],
  [
    'the judgments left out',
    'consistent',
    'reply#0 validations[1].judgment',
    (f) =>
      f.editAll('reply#0', (record) => {
        delete record.judgments;
      }),
  ],
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
  [
    'a model that is said to have been asked unseen',
    'consistent',
    'count#0 modelUnmeasured',
    (f) =>
      f.editAll('count#0', (record) => {
        record.modelUnmeasured = true;
      }),
  ],
  [
    'a definition whose short hashes are all the same',
    'consistent',
    'count#0 definition',
    (f) =>
      f.editAll('count#0', (record) => {
        record.definition = '0'.repeat(64);
      }),
  ],
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

test('nothing is contradicted in what is honest', { timeout: 60_000 }, async () => {
  expect(await contradictionsIn(place.dataFolder)).toEqual([]);
});

test('nothing is contradicted in honest trials without a verdict, or whose harness was stopped', {
  timeout: 240_000,
}, async () => {
  using other = openPlace();
  const suite = other.suite({
    cases: [
      { id: 'broken', prepare: 'exit 3', verify: 'true', variables: { act: 'true' } },
      { id: 'unchecked', verify: 'kill -9 $$', variables: { act: 'true' } },
      { id: 'early', verify: '# One\n\ntrue\nif true; then exit 0; fi\nfalse', variables: { act: 'true' } },
      {
        ...{ id: 'lines', variables: { act: 'true' } },
        verify:
          "cat > a <<'END'\n# not\n\nfalse\nEND\ntest 4 = \\\n  4\nf() {\n  test -s a\n}\n\nf; f # end\n\n",
      },
      { id: 'late', verify: 'true', variables: { act: 'sleep 60' } },
    ],
    sandbox: { timeouts: { harness: '3s' } },
  });
  const ran = await offsite(other, ['run', suite, '--json']);
  expect(JSON.parse(ran.stdout), ran.stderr).toMatchObject({ passed: 3 });
  expect(await contradictionsIn(other.dataFolder)).toEqual([]);
});

test.each(forgeries)(
  '%s is contradicted at the level %s, at %s',
  { timeout: 60_000 },
  async (_, level, at, forge) => {
    const folder = join(place.folder, 'forged');
    {
      using forger = new Forger(place.dataFolder, folder);
      forge(forger);
    }
    const found = await contradictionsIn(folder);
    expect(
      found.filter((one) => one.level === level && one.at.startsWith(at)),
      JSON.stringify(found),
    ).not.toEqual([]);
  },
);

test('what is left out of a record is said not to be checked', { timeout: 60_000 }, async () => {
  const folder = join(place.folder, 'left-out');
  {
    using forger = new Forger(place.dataFolder, folder);
    forger.editAll('wrong#0', (record) => Object.assign(record, { verdict: 'passed', fromService: true }));
    forger.editAll('count#0', (record) => {
      for (const member of ['models', 'fingerprint', 'sandboxId', 'derivedTrajectory'] as const)
        delete record[member];
    });
  }
  const { whole, trials } = await auditIn(folder);
  const level = (name: string) =>
    trials
      .find(({ trial }) => `${trial.caseId}#${trial.ordinal}` === name)
      ?.audit.levels.find((one) => one.level === 'consistent');
  expect(level('wrong#0')?.state).toBe('not reached');
  expect(level('count#0')?.unchecked).toEqual(
    expect.arrayContaining([expect.stringMatching(/no fingerprint/), expect.stringMatching(/no exchange/)]),
  );
  expect(whole.level('consistent').unchecked).toContainEqual(expect.stringMatching(/1 trials are copies/));
});

/**
 * What agrees with itself. Offsite's owner made everything anew that follows from the edit, so that only
 * doing it again shows it.
 */
const thorough: [
  trial: string,
  level: AuditLevel,
  what: string,
  forge: (forger: Forger) => void,
  at?: string,
][] = [
  [
    'count#0',
    'replayed',
    'another last message, which a validator may read',
    (f) =>
      f.editAll('count#0', (record) => {
        record.finalMessage = 'It is nine.';
      }),
    'finalMessage',
  ],
  [
    'count#0',
    'replayed',
    'another exit code of the harness',
    (f) =>
      f.editAll('count#0', (record) => Object.assign(record, { harness: { ended: 'exited', exitCode: 3 } })),
    'harness.exitCode',
  ],
  [
    'wrong#0',
    'replayed',
    'a command that was replaced in a trajectory that is said to be cut',
    (f) =>
      f.editAll('wrong#0', (record) => {
        record.commandsCut = true;
        Object.assign(first(record.trajectory), { command: 'node check.js' });
      }),
    'trajectory[0].command',
  ],
  [
    'wrong#0',
    'regraded',
    'a failure made a pass, with its checks',
    (f) =>
      f.editAll('wrong#0', (record) => {
        record.verdict = 'passed';
        for (const step of record.verifySteps ?? []) step.exitCode = 0;
      }),
  ],
  [
    'reply#0',
    'regraded',
    'a validation left out',
    (f) =>
      f.editAll('reply#0', (record) => {
        record.validations?.shift();
        first(record.trajectory).output = 'written';
      }),
  ],
  [
    'reply#1',
    'regraded',
    'another score of a judge, wherever it stands but in its answer',
    (f) =>
      f.editAll('reply#1', ({ judgments = [], validations = [] }) => {
        for (const one of [...judgments, ...validations.map(({ judgment }) => judgment)])
          Object.assign(one ?? {}, { score: 0.2, threshold: 0.1 });
      }),
    'judgment it is kind',
  ],
  [
    'count#1',
    'replayed',
    'another command, in all requests and answers too',
    (f) => f.rewrite('count#1', 'wc -w', 'wc -c'),
  ],
  [
    'wrong#1',
    'replayed',
    'the work of a better trial, with its checks',
    (f) => {
      const better = f.record('count#1');
      f.editAll('wrong#1', (record) => {
        record.verdict = 'passed';
        for (const step of record.verifySteps ?? []) step.exitCode = 0;
        Object.assign(record, { left: better.left, changes: better.changes });
      });
      f.keepArchiveOf('wrong#1');
    },
  ],
];

test('what agrees with itself is contradicted when the work is graded and the harness runs again', {
  timeout: 240_000,
}, async () => {
  const folder = join(place.folder, 'thorough');
  {
    using forger = new Forger(place.dataFolder, folder);
    // The last two edit what the others read.
    for (const [, , , forge] of thorough.toReversed()) forge(forger);
  }
  expect(await contradictionsIn(folder)).toEqual([]);
  const { stdout, stderr, exitCode } = await offsite(place, ['audit', '--level', 'replayed', '--json'], {
    dataFolder: folder,
  });
  expect(exitCode, stderr).toBe(1);
  const audited: { trials: { caseId: string; ordinal: number; levels: AuditedLevel[] }[] } =
    JSON.parse(stdout);
  const levelOf = (name: string, level: AuditLevel) =>
    audited.trials
      .find(({ caseId, ordinal }) => `${caseId}#${ordinal}` === name)
      ?.levels.find((one) => one.level === level);
  for (const [name, level, what, , at = ''] of thorough) {
    const found = levelOf(name, level);
    expect(found?.state, `${what}: ${JSON.stringify(found)}`).toBe('contradicted');
    expect(
      found?.contradictions.some(({ path }) => path.startsWith(at)),
      what,
    ).toBe(true);
  }
  // What a command prints may depend on the machine, so it is no contradiction, but it is said.
  expect(levelOf('reply#0', 'replayed')?.unchecked).toContainEqual(
    expect.stringMatching(/1 command printed/),
  );
  expect(levelOf('wrong#0', 'consistent')?.unchecked).toContainEqual(
    expect.stringMatching(/more than a record/),
  );
});

test('a signed file is audited in another data folder; another key or another content is contradicted', {
  timeout: 240_000,
}, async () => {
  const keyFile = (name: string) => {
    const { privateKey, publicKey } = generateKeyPairSync('ed25519');
    writeFileSync(join(place.folder, `${name}.pub.pem`), publicKey.export({ type: 'spki', format: 'pem' }));
    writeFileSync(join(place.folder, `${name}.pem`), privateKey.export({ type: 'pkcs8', format: 'pem' }));
    return join(place.folder, `${name}.pem`);
  };
  const [own, other] = [keyFile('owner'), keyFile('other')];
  const elsewhere = join(place.folder, 'elsewhere');
  const exported = async (name: string, key: string, dataFolder: string) => {
    const file = join(place.folder, name);
    const written = await offsite(place, ['export', '--evidence', file, '--sign-with', key], { dataFolder });
    expect(written.exitCode, written.stderr).toBe(0);
    return file;
  };
  const audited = async (file: string, level: AuditLevel) => {
    const args = ['audit', file, '--signed-by', join(place.folder, 'owner.pub.pem'), '--level', level];
    const { stdout, stderr, exitCode } = await offsite(place, [...args, '--json'], { dataFolder: elsewhere });
    if (stdout === '') throw new Error(stderr);
    return { exitCode, ...JSON.parse(stdout) };
  };
  const honest = await exported('honest.evidence', own, place.dataFolder);
  const all = await audited(honest, 'replayed');
  expect(all.trials.map(({ standing }: { standing: string }) => standing)).toEqual(Array(6).fill('replayed'));
  expect([all.contradicted, all.exitCode, all.whole.state]).toEqual([0, 0, 'held']);
  expect(all.signature).toContain('signed by SHA256:');

  const resigned = await audited(await exported('resigned.evidence', other, place.dataFolder), 'consistent');
  expect([resigned.exitCode, resigned.whole.contradictions[0].found]).toEqual([
    1,
    'it is not signed by anybody of --signed-by',
  ]);

  const folder = join(place.folder, 'dropped');
  {
    using forger = new Forger(place.dataFolder, folder);
    forger.drop('wrong#1');
  }
  const dropped = await audited(await exported('dropped.evidence', own, folder), 'consistent');
  expect([dropped.exitCode, dropped.whole.state]).toEqual([1, 'contradicted']);

  const entries = await entriesOf(honest);
  const record = statementIn(entries).predicate.batch.runs[0]?.trials[0]?.result?.record;
  const edited = entries.map((entry) =>
    entry.name === `blobs/${record}` ? { ...entry, content: Buffer.alloc(entry.content.length) } : entry,
  );
  writeBundle(join(place.folder, 'edited.evidence'), edited);
  const [intact] = (await audited(join(place.folder, 'edited.evidence'), 'intact')).trials.flatMap(
    ({ levels }: { levels: AuditedLevel[] }) => levels.filter(({ state }) => state === 'contradicted'),
  );
  expect(intact.contradictions.map(({ found }: { found: string }) => found)).toEqual([
    `blobs/${record} was changed: its content has another hash`,
  ]);

  const cut = readFileSync(honest).subarray(0, -2_000);
  writeFileSync(join(place.folder, 'cut.evidence'), cut);
  await expect(audited(join(place.folder, 'cut.evidence'), 'intact')).rejects.toThrow('is not evidence');
});
