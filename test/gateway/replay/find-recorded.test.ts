import { expect, test } from 'vitest';
import { canonicalRequest } from '../../../src/gateway/replay/canonical-request.ts';
import type { TrialLabel } from '../../../src/gateway/replay/cassette.ts';
import { RecordedFinder } from '../../../src/gateway/replay/find-recorded.ts';
import { nearestTo } from '../../../src/gateway/replay/replay.ts';
import type { NeutralRequest } from '../../../src/gateway/translation/neutral-request.ts';
import { asks, called, cassette, recorded, returned, said, trial } from './recorded.ts';

const label: TrialLabel = { case: 'one', variant: 'codex', ordinal: 0 };
const start = asks(said('Count.'));
const after = (result: string) => asks(said('Count.'), called('c1', 'wc'), returned('c1', result));

function asked(finder: RecordedFinder, request: NeutralRequest, role: 'agent' | 'judge' = 'agent') {
  const found = finder.find({ role, isOf: () => true, model: 'big', forms: [canonicalRequest(request)] });
  return (
    found && {
      answer: found.exchange.answer().body.toString(),
      how: found.how,
      again: found.again,
      ...(found.differs.length > 0 && { differs: found.differs }),
    }
  );
}

test('equal requests get the recorded answers in their order, and then the last one again', () => {
  const finder = new RecordedFinder(
    cassette(trial({}, recorded('first', start), recorded('second', start))),
    label,
  );
  const answers = [1, 2, 3].map(() => asked(finder, start));
  expect(answers).toEqual([
    { answer: 'first', how: 'exact', again: false },
    { answer: 'second', how: 'exact', again: false },
    { answer: 'second', how: 'exact', again: true },
  ]);
});

test('each trial gets the answers of its own recording, however trials interleave', () => {
  const all = cassette(
    ...[0, 1, 2].map((ordinal) =>
      trial({ ordinal }, recorded(`${ordinal} a`, start), recorded(`${ordinal} b`, start)),
    ),
  );
  const finders = [2, 0, 1].map((ordinal) => new RecordedFinder(all, { ...label, ordinal }));
  const given = [0, 1].flatMap(() => finders.map((finder) => asked(finder, start)?.answer));
  expect(given).toEqual(['2 a', '0 a', '1 a', '2 b', '0 b', '1 b']);
});

test('a trial beyond those that were recorded gets the answers of one of them', () => {
  const all = cassette(
    trial({ ordinal: 0 }, recorded('0', start)),
    trial({ ordinal: 1 }, recorded('1', start)),
  );
  const ordinals = [2, 3, 4];
  const given = ordinals.map(
    (ordinal) => asked(new RecordedFinder(all, { ...label, ordinal }), start)?.answer,
  );
  expect(given).toEqual(['0', '1', '0']);
});

test('a result that differs only in a volatile shape matches, and the match says so', () => {
  const finder = new RecordedFinder(cassette(trial({}, recorded('nine', after('9 words in 12 ms')))), label);
  expect(asked(finder, after('9 words in 7 ms'))).toEqual({ answer: 'nine', how: 'known', again: false });
});

test('a result that differs otherwise has no answer, and the nearest request tells the difference', () => {
  const trials = [trial({}, recorded('go', start), recorded('nine', after('9 words')))];
  const finder = new RecordedFinder(cassette(...trials), label);
  expect(asked(finder, after('10 words'))).toBeUndefined();
  expect(nearestTo(canonicalRequest(after('10 words')), 'agent', trials)).toBe(
    'the nearest is request 2 of one · codex #0: turn 3 differs in the result of call 1: recorded "9 words", now "10 words"',
  );
});

test("the same conversation matches under another system text, nearest first; another user's text never does", () => {
  const under = (system: string, tools = start.tools) => ({
    ...asks({ from: 'system', text: system }, said('Count.')),
    tools,
  });
  const look = { name: 'look', parameters: {} };
  const finder = new RecordedFinder(
    cassette(
      trial(
        {},
        recorded('other', under('You are another.\nBe brief.', [look])),
        recorded('same', under('You are an agent.\nBe brief.')),
      ),
    ),
    label,
  );
  const changed = under('You are an agent.\nBe long.');
  expect(asked(finder, changed)).toEqual({
    answer: 'same',
    how: 'conversation',
    again: false,
    differs: ['context'],
  });
  expect(asked(finder, asks(said('Count again.')))).toBeUndefined();
  expect(asked(finder, { ...start, tools: [] })).toBeUndefined();
});

test('a judge gets no answer that an agent got, and the agent none of a judge', () => {
  const finder = new RecordedFinder(
    cassette(trial({}, recorded('agent', start), recorded('judge', after('9'), { role: 'judge' }))),
    label,
  );
  expect(asked(finder, start, 'judge')).toBeUndefined();
  expect(asked(finder, after('9'))).toBeUndefined();
});

test('the own trial comes first, then the same case, and then all others', () => {
  const all = cassette(
    trial({ case: 'two' }, recorded('case two', after('9'))),
    trial({ variant: 'pi' }, recorded('pi', after('9')), recorded('pi start', start)),
    trial({}, recorded('own', start)),
  );
  const finder = new RecordedFinder(all, label);
  expect([asked(finder, start)?.answer, asked(finder, after('9'))?.answer]).toEqual(['own', 'pi']);
});
