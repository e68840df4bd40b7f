import { randomUUID } from 'node:crypto';
import { versionOf } from '../../base/version.ts';
import { plainText } from '../../text/output.ts';
import { lines, type Redact, text } from '../../text/printable.ts';
import type { JunitBatch, JunitTrial } from './junit.ts';

/**
 * A batch as a document of CTRF, the Common Test Report Format (https://ctrf.io), with a test for each trial.
 * A void trial is `other`, a trial without a result is `skipped`.
 */
export function ctrfJson(batch: JunitBatch, { redact, now }: { redact?: Redact; now: number }): string {
  const plain = (content: string) => plainText(text`${content}`, redact);
  const tests = batch.runs.flatMap((run) => {
    const suite = [plain(run.case), plain(run.variant)];
    const named = (ordinal: number) => ({ name: `${suite.join(' · ')} #${ordinal}`, suite });
    return [
      ...run.trials.map((trial) => ({
        ...named(trial.ordinal),
        ...{ status: statusOf(trial), duration: Math.round(trial.durationMs), rawStatus: trial.verdict },
        ...problemOf(trial, plain, redact),
      })),
      ...(run.unfinished ?? []).map(({ ordinal, why }) => ({
        ...named(ordinal),
        ...{ status: 'skipped', duration: 0, message: plain(why) },
      })),
    ];
  });
  const { startedAt: start = now, finishedAt: stop = start } = batch;
  const count = (status: string) => tests.filter((test) => test.status === status).length;
  const document = {
    ...{ reportFormat: 'CTRF', specVersion: '0.0.0', reportId: randomUUID() },
    ...{ timestamp: new Date(now).toISOString(), generatedBy: 'offsite', runId: batch.set ?? batch.batchId },
    results: {
      tool: { name: 'offsite', version: versionOf() },
      summary: {
        ...{ tests: tests.length, passed: count('passed'), failed: count('failed') },
        ...{ skipped: count('skipped'), pending: 0, other: count('other') },
        ...{ start: Math.round(start), stop: Math.round(stop) },
      },
      tests,
    },
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

function statusOf({ verdict }: JunitTrial): string {
  return verdict === 'passed' || verdict === 'failed' ? verdict : 'other';
}

function problemOf(
  { verdict, cause, failures, failedOutput }: JunitTrial,
  plain: (content: string) => string,
  redact?: Redact,
) {
  if (verdict === 'passed') return {};
  const why = cause ? [`${cause.kind}, in ${cause.phase}: ${cause.message}`] : [];
  const all = [...why, ...failures];
  const trace = [...all, ...(failedOutput === undefined ? [] : ['', failedOutput])].join('\n');
  return {
    message: plain(all[0]?.split('\n', 1)[0] ?? verdict),
    trace: plainText(lines(trace), redact),
  };
}
