import { Writable } from 'node:stream';
import { stripVTControlCharacters } from 'node:util';
import { describe, expect, test } from 'vitest';
import type { BatchEvent, BatchTrial } from '../../src/agent/run-batch.ts';
import { printedText } from '../../src/bounds/anyone.ts';
import { daemonLog } from '../../src/cli/daemon/log.ts';
import { Activity } from '../../src/cli/output/activity.ts';
import { trialWords } from '../../src/cli/output/activity-text.ts';
import { frameOf, type Size } from '../../src/cli/output/frame.ts';
import { liveDisplay } from '../../src/cli/output/live-display.ts';
import { Progress } from '../../src/cli/output/progress.ts';
import { summaryOf, textsOf } from '../../src/cli/output/summary.ts';
import { listingOf } from '../../src/record/listing.ts';
import type { TrialRecord } from '../../src/record/trial-record.ts';
import { type Content, Output } from '../../src/text/output.ts';
import { keptPaths } from '../../src/trial/record.ts';
import { attacks, harmIn, hostileName, hostileText } from '../hostile/hostile-text.ts';

/** A terminal of 80 columns that keeps what it is sent. */
class Screen extends Writable {
  readonly isTTY = true;
  readonly columns = 80;
  readonly rows = 40;
  sent = '';
  override _write(chunk: Buffer, _: string, done: () => void) {
    this.sent += chunk;
    done();
  }
}

const trial = {
  run: { id: 'r', case: { request: { id: attacks.stop } }, variant: { name: hostileName, model: 'm' } },
  ordinal: 0,
} as unknown as BatchTrial;

const cause = { kind: 'model', phase: 'harness', message: attacks.lineStop, output: hostileText } as const;
const result = { verdict: 'void', cause, startedAt: 0, finishedAt: 1 } as TrialRecord;

const events: BatchEvent[] = [
  { kind: 'phase', trial, phase: 'harness' },
  { kind: 'build', build: { id: '1', what: hostileText, state: { kind: 'running' } } },
  { kind: 'build', build: { id: '2', what: hostileText, state: { kind: 'failed', cause } } },
  { kind: 'step', title: hostileText, state: 'begins' },
  { kind: 'waiting', for: `the model ${hostileName}`, reason: `${attacks.lineStop}\n${hostileText}` },
  { kind: 'resumed', for: attacks.stop },
  { kind: 'note', message: attacks.stop },
  { kind: 'retried', trial, attempt: 1, message: attacks.lineV1 },
  { kind: 'unstored', trial, message: hostileText },
  { kind: 'report', trial, delivered: { state: 'parked', answer: attacks.lineStop } },
  { kind: 'finished', trial, result },
];

describe('on a terminal', () => {
  test('the live display sends no sequence but its own, whatever trials are called and models say', () => {
    const screen = new Screen();
    {
      const err = new Output(screen);
      const activity = new Activity(() => 0);
      const shown = (content: Content) => err.shown(content);
      const frame = (size: Size) => frameOf(activity.state(), { size, words: trialWords, shown });
      const stream = screen as unknown as NodeJS.WriteStream;
      using progress = new Progress(activity, liveDisplay({ stream, err, frame }));
      for (const event of events) progress.event(event);
    }
    for (const attack of ['\u001b]', '\u001b[2J', '\u001b[1;1H']) expect(screen.sent).not.toContain(attack);
    expect(harmIn(stripVTControlCharacters(screen.sent))).toEqual([]);
    expect(screen.sent).toContain('\\u{1b}]52;c;');
  });

  test('the log of the daemon is text alone, with the fields and stacks of others in it', () => {
    const screen = new Screen();
    const log = daemonLog(new Output(screen));
    log.warn({ reason: hostileText, [attacks.stop]: attacks.lineStop }, hostileText);
    const error = new Error(attacks.lineStop);
    log.error({ err: error }, attacks.stop);
    expect(harmIn(stripVTControlCharacters(screen.sent))).toEqual([]);
  });
});

test('elsewhere it is a line of JSON an event, with the texts as they are', () => {
  let sent = '';
  const log = daemonLog(new Output({ write: (line) => (sent += line) }));
  log.warn({ reason: hostileText.toWellFormed() }, attacks.v1);
  expect(harmIn(sent)).toEqual([]);
  expect(JSON.parse(sent)).toMatchObject({ reason: hostileText.toWellFormed(), msg: attacks.v1 });
});

describe('of a trial that changed 300,000 files', () => {
  const paths = Array.from({ length: 300_000 }, (_, index) => `some/folder/file-${index}`);

  test('the record keeps the first ones, and how many there are', () => {
    const kept = keptPaths({ filesChanged: paths, artifactsOmitted: paths });
    expect(kept).toMatchObject({ filesChangedCount: 300_000, artifactsOmittedCount: 300_000 });
    expect(kept.filesChanged).toEqual(paths.slice(0, 10_000));
    const long = Array.from({ length: 9_000 }, () => 'x'.repeat(4_000));
    expect(JSON.stringify(keptPaths({ filesChanged: long })).length).toBeLessThan(1.2 * 1024 ** 2);
    expect(keptPaths({ filesChanged: ['a'] })).toMatchObject({ filesChanged: ['a'], filesChangedCount: 1 });
  });

  test('the JSON document names the first ones, says how many there are, and that it is cut', () => {
    const whole = { ...result, ...keptPaths({ filesChanged: paths }) } as TrialRecord;
    const runs = [{ id: 'r', case: 'a', variant: 'v', model: 'm' }];
    const summed = (record: TrialRecord) => {
      const [listing, texts] = [listingOf(record), textsOf(record)];
      const trials = [{ runId: 'r', ordinal: 0, verdict: record.verdict, listing, texts }];
      return summaryOf({ id: 'b', runs, trials }, 's', []).runs[0];
    };
    const run = summed(whole);
    expect(run?.trials[0]).toMatchObject({ filesChangedCount: 300_000, filesChangedTruncated: true });
    expect(run?.trials[0]?.filesChanged).toHaveLength(printedText.count.listed);
    expect(summed({ ...result, filesChanged: ['a'] })?.trials[0]).toMatchObject({
      filesChanged: ['a'],
      filesChangedCount: 1,
      filesChangedTruncated: false,
    });
  });
});
