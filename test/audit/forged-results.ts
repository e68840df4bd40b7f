import { edited, type Forgery, first, madeVoid, reported, withoutChecks } from './forgery.ts';

/** Contents that were edited or removed, and verdicts that were changed. */
export const forgedResults: Forgery[] = [
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
  edited('a verdict, with its report', 'wrong#0', 'verdict', (record) => {
    record.verdict = 'passed';
  }),
  edited('a failure made void', 'wrong#0', 'cause', (record) => {
    record.verdict = 'void';
  }),
  edited(
    'a failure made void by a harness that ended early',
    'wrong#0',
    'cause.phase',
    (record) => void madeVoid(record, 'infrastructure'),
  ),
  edited(
    'a failure made void by a harness that failed, without its checks',
    'wrong#0',
    'cause.kind',
    (record) => withoutChecks(madeVoid(record, 'harness')),
  ),
  edited(
    'a failure made void by a model that failed, without its checks',
    'wrong#0',
    'cause.kind',
    (record) => withoutChecks(madeVoid(record, 'model')),
  ),
  edited('a pass with somebody at fault', 'count#0', 'cause', (record) => {
    record.cause = { kind: 'infrastructure', phase: 'verify', message: 'none' };
  }),
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
  reported('a report that passed', 'wrong#0', 'report.outcome.passed', ({ outcome }) => {
    outcome.passed = true;
  }),
  edited('a judge’s score below its threshold', 'reply#0', 'verdict', ({ judgments }) => {
    first(judgments).score = 0.1;
  }),
  edited('a pass of what was not run', 'wrong#0', 'verdict', (record) =>
    Object.assign(record, { verdict: 'passed', notRun: true }),
  ),
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
];
