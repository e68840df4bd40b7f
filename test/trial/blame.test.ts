import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { withBlameTable } from '../../scripts/reference/blame-table.ts';
import { blameOf, blameTable, type Evidence, evidenceValues, nothingTried } from '../../src/trial/blame.ts';

type Name = keyof Evidence;

/** What only the end of a harness shows. A decision about grading reads none of these. */
const ofHarness: readonly Name[] = ['model', 'harness', 'probe'];
const ofGrading: readonly Name[] = ['work', 'untouched', 'solved', 'judge', 'again', 'after'];

/** Every combination of these, beside what is known. */
function* combined(names: readonly Name[], known: Evidence): Generator<Evidence> {
  const [name, ...rest] = names;
  if (name === undefined) return yield known;
  for (const value of evidenceValues[name]) yield* combined(rest, { ...known, [name]: value });
}

const start: Evidence = { ...nothingTried, agent: 'acted', model: 'answered', harness: 'exited' };

/** Every combination of what may be known. */
function* everyEvidence(): Generator<Evidence> {
  yield* combined(['agent', ...ofHarness], start);
  for (const evidence of combined(['agent', ...ofGrading], start))
    if (evidence.work !== 'untried') yield evidence;
}

/** What is decided for every combination that has this property. */
function decided(has: (evidence: Evidence) => boolean): typeof all {
  return all.filter(({ evidence }) => has(evidence));
}

const all = [...everyEvidence()].map((evidence) => ({ evidence, decision: blameOf(evidence) }));
const agents = all.filter(({ decision }) => decision.kind === 'blame' && decision.blame === 'agent');

const isFault = (value: Evidence['work']) => value !== 'untried' && value !== 'verdict';
const failedAgain = ({ again }: Evidence) => again === 'same fault' || again === 'other fault';
/** Whether a grading without the agent's work had a verdict, and a judge answered without it. */
const hasControl = ({ work, untouched, solved, judge }: Evidence) =>
  (work !== 'judge' || judge === 'answers') &&
  (untouched === 'verdict' || (untouched === 'checks' && solved === 'verdict')) &&
  (solved === 'verdict' || solved === 'none');

test('an agent is blamed only if it was there, its work failed to be graded twice, and a control was graded', () => {
  expect(agents.length).toBeGreaterThan(0);
  const wrong = agents.filter(
    ({ evidence }) =>
      evidence.agent === 'absent' ||
      !isFault(evidence.work) ||
      !failedAgain(evidence) ||
      !hasControl(evidence),
  );
  expect(wrong).toEqual([]);
});

test('an agent is blamed for no fault of a machine or a judge that came without its work too', () => {
  const wrong = agents.filter(
    ({ evidence: { work, untouched, again, after } }) =>
      untouched === 'machine' ||
      untouched === 'judge' ||
      ((again === 'other fault' || work === 'judge') && after !== 'verdict'),
  );
  expect(wrong).toEqual([]);
});

test('work that twice cannot be graded, while the control can each time, is never void', () => {
  const spoiled = decided((evidence) => {
    const { agent, work, after } = evidence;
    const isSpoiled = isFault(work) && hasControl(evidence) && failedAgain(evidence);
    return agent !== 'absent' && isSpoiled && after === 'verdict';
  });
  expect(spoiled.length).toBeGreaterThan(0);
  expect(spoiled.filter((one) => !agents.includes(one))).toEqual([]);
});

test('a verdict stands, whatever else was seen', () => {
  const graded = decided(({ work }) => work === 'verdict');
  expect(graded.filter(({ decision }) => decision.kind !== 'grade')).toEqual([]);
});

test('where no model answered, work is graded only if the harness ended as it should', () => {
  const absent = decided(({ agent, work }) => agent === 'absent' && work === 'untried');
  const wrong = absent.filter(
    ({ evidence: { harness, model }, decision }) =>
      decision.kind === 'grade' &&
      (!['exited', 'mute', 'stopped'].includes(harness) || model === 'failed' || model === 'refused'),
  );
  expect(wrong).toEqual([]);
});

test('only what was not tried yet is tried next', () => {
  const wrong = all.filter(
    ({ evidence, decision }) => decision.kind === 'try' && evidence[decision.experiment] !== 'untried',
  );
  expect(wrong).toEqual([]);
});

test('no decision about grading depends on how the harness ended, and the other way round', () => {
  const read = blameTable.map(({ when }) => Object.keys(when) as Name[]);
  const atEnd = blameTable.findLastIndex(({ when }) => when.work?.includes('untried'));
  expect(
    read
      .slice(atEnd + 1)
      .flat()
      .filter((name) => ofHarness.includes(name)),
  ).toEqual([]);
  expect(
    read
      .slice(0, atEnd + 1)
      .flat()
      .filter((name) => ofGrading.includes(name) && name !== 'work'),
  ).toEqual([]);
});

test('every row of the table decides something', () => {
  expect(new Set(all.map(({ evidence }) => rowOf(evidence))).size).toBe(blameTable.length);
});

function rowOf(evidence: Evidence): number {
  return blameTable.findIndex(({ when }) =>
    (Object.keys(when) as Name[]).every((name) => (when[name] as readonly string[]).includes(evidence[name])),
  );
}

test('docs/reference/blame.md shows the table that the code reads (else: npm run generate)', () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/reference/blame.md'), 'utf8');
  expect(withBlameTable(page)).toBe(page);
});
