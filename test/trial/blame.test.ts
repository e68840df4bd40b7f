import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { withBlameTable } from '../../scripts/reference/blame-table.ts';
import {
  blameOf,
  blameTable,
  type Decision,
  type Evidence,
  evidenceValues,
  nothingTried,
} from '../../src/trial/blame.ts';

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

const isFault = (value: Evidence['solved']) => !['untried', 'none', 'verdict'].includes(value);
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

test('work of an agent is void only if something without that work failed too', () => {
  const wrong = decided(({ agent, work }) => agent !== 'absent' && isFault(work)).filter(
    ({ evidence: { untouched, solved, judge, after }, decision }) =>
      decision.kind === 'blame' &&
      decision.blame !== 'agent' &&
      ![untouched, solved].some(isFault) &&
      judge !== 'silent' &&
      judge !== 'wrong' &&
      after !== 'fault',
  );
  expect(wrong).toEqual([]);
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

/** All that experiments can lead to from here: what is tried, each result of it, and whose fault it is. */
function courses(evidence: Evidence, seen: string, indent = ''): string {
  const decision = blameOf(evidence);
  if (decision.kind !== 'try') return `${indent}${seen}: ${wordOf(decision)}\n`;
  const { experiment } = decision;
  const branches = new Map<string, string[]>();
  for (const value of evidenceValues[experiment]) {
    if (value === 'untried') continue;
    const branch = courses({ ...evidence, [experiment]: value } as Evidence, '*', `${indent}  `);
    branches.set(branch, [...(branches.get(branch) ?? []), value]);
  }
  const lines = [...branches].map(([branch, values]) => branch.replace('*', values.join(' or ')));
  return `${indent}${seen}: ${experiment}?\n${lines.join('')}`;
}

/** What is decided for each answer of a model and each ending of a harness. */
function endings(agent: Evidence['agent']): string {
  const rows = evidenceValues.model.map((model) => {
    const cells = evidenceValues.harness.map((harness) => {
      const ended = { ...start, agent, model, harness };
      const decision = blameOf(ended);
      if (decision.kind !== 'try') return wordOf(decision);
      const probed = (['silent', 'answers'] as const).map((probe) => wordOf(blameOf({ ...ended, probe })));
      return `${decision.experiment}? ${probed.join(' or ')}`;
    });
    return [model, ...cells];
  });
  return [['', ...evidenceValues.harness], ...rows].map((row) => `${row.join(' | ')}\n`).join('');
}

function wordOf(decision: Decision): string {
  return decision.kind === 'blame' ? decision.blame : decision.kind;
}

test('all that experiments can lead to ends as it was thought out, in blame-outcomes.txt', () => {
  const harnesses = evidenceValues.agent.map(
    (agent) => `agent ${agent}, at the end of its harness\n${endings(agent)}`,
  );
  const gradings = evidenceValues.agent.map((agent) => {
    const works = evidenceValues.work.filter((work) => work !== 'untried');
    return `agent ${agent}, grading of its work\n${works.map((work) => courses({ ...start, agent, work }, work, '  ')).join('')}`;
  });
  expect([...harnesses, ...gradings].join('\n')).toBe(
    readFileSync(join(import.meta.dirname, 'blame-outcomes.txt'), 'utf8'),
  );
});

test('docs/reference/blame.md shows the table that the code reads (else: npm run generate)', () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/reference/blame.md'), 'utf8');
  expect(withBlameTable(page)).toBe(page);
});
