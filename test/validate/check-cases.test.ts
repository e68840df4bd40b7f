import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { command } from '../../runners/command/runner.ts';
import { runners } from '../../runners/index.ts';
import { type Clock, systemClock } from '../../src/base/clock.ts';
import { abortable, untilAborted } from '../../src/base/deadline.ts';
import { checkCases } from '../../src/check/check-cases.ts';
import type { ActivityEvent } from '../../src/cli/output/activity.ts';
import { connectEngine } from '../../src/engine/connect.ts';
import { openGateway } from '../../src/gateway/open-gateway.ts';
import type { Runner } from '../../src/harness/runner.ts';
import { noExtras, type PlannedCase, type SuitePlan } from '../../src/suite/plan.ts';
import { Sandboxes } from '../../src/trial/prepare/sandboxes.ts';
import { dockerOf } from '../engine/docker-of.ts';
import { specOf } from '../trial/trial-bench.ts';

const planned = (id: string, verify: string, local: Partial<PlannedCase['local']> = {}): PlannedCase => ({
  request: { id, name: id, prepare: { name: 'prepare', source: 'echo wrong > result' }, verify },
  local: { ...noExtras, ...local },
});

/** Leaves another result each time. */
function changing(): Runner {
  let turns = 0;
  return {
    ...command,
    open: ({ container }) => ({
      async turn() {
        const result = turns++ % 2 === 0 ? 'wrong' : 'right';
        await container.put([{ path: '/workspace/result', content: `${result}\n` }]);
        return { ending: { ended: 'exited', exitCode: 0 }, trajectory: [], events: [] };
      },
    }),
  };
}

interface CheckedWith {
  clock?: Clock;
  caseTimeoutMs?: number;
  onEvent?: (event: ActivityEvent) => void;
}

async function check(
  cases: PlannedCase[],
  given: readonly Runner[],
  repeat: number,
  { clock = systemClock, caseTimeoutMs, onEvent = () => undefined }: CheckedWith = {},
) {
  const { profile, sandbox } = specOf('exit 1');
  const credentials = { harnessConnectionId: 'command', sandboxConnectionId: 'local' };
  const variant = { name: 'v', model: 'm', modelConfig: undefined, harness: 'command', userModel: undefined };
  const plan: SuitePlan = {
    file: 'suite.yaml',
    suite: { id: 's', name: 's', prompt: { kind: 'text', text: '' } },
    trials: 1,
    judges: [],
    variants: [{ ...variant, profile, sandbox, credentials }],
    cases,
  };
  await using engine = await connectEngine({ instance: `test-check-${randomUUID()}` });
  await using sandboxes = new Sandboxes(engine, undefined, { runners: given });
  await using gateway = openGateway({ models: {}, env: {}, clock, scripted: () => expect.fail() });
  const parts = { sandboxes, runners: given, clock, gateway, budgets: { trial: {}, batch: undefined } };
  const seen: string[] = [];
  const onCase = ({ id }: { id: string }) => void seen.push(id);
  const signal = new AbortController().signal;
  const gradings = { planned: 0, finished: 0 };
  const observe = (event: ActivityEvent) => {
    if (event.kind === 'planned') gradings.planned += event.trials;
    if (event.kind === 'finished') gradings.finished++;
    onEvent(event);
  };
  const followed = { onBegin: () => undefined, onState: () => undefined, onCase, observe };
  const options = { repeat, concurrency: 2, caseTimeoutMs, signal, ...followed };
  const checked = await checkCases(plan, parts, options);
  await sandboxes.removalsEnded();
  const label = [`offsite.instance=${engine.instance}`, 'offsite.role=container'];
  expect(await dockerOf(engine).listContainers({ all: true, filters: { label } })).toEqual([]);
  expect(seen.toSorted()).toEqual(cases.map(({ request }) => request.id).toSorted());
  expect(gradings.finished).toBe(gradings.planned);
  return checked;
}

test('a check tells the case that passes untouched, and the one whose solution fails', async () => {
  const cases = [
    planned('good', 'grep -qx right result', { solution: 'echo right > result' }),
    planned('untouched', 'grep -q . result'),
    planned('unsolved', 'grep -qx right result', { solution: 'echo almost > result' }),
  ];
  expect(await check(cases, runners, 1)).toMatchObject([
    {
      id: 'good',
      states: [
        { state: 'untouched', verdicts: ['failed'], asExpected: true },
        { state: 'solved', verdicts: ['passed'], asExpected: true },
      ],
    },
    { id: 'untouched', states: [{ verdicts: ['passed'], asExpected: false }] },
    {
      id: 'unsolved',
      states: [{ asExpected: true }, { state: 'solved', verdicts: ['failed'], asExpected: false }],
    },
  ]);
});

test('a check says what passes untouched beside what fails', async () => {
  const validator = { name: 'said', source: '#!/bin/sh\necho it is not; exit 1' };
  const beside = planned('beside', 'true');
  // What the checks and the judge of a case become.
  const judged = planned('judged', 'true');
  const checks = {
    name: 'checks',
    source: readFileSync('src/suite/checks-validator.mjs', 'utf8'),
    manifest: [
      { index: 0, name: 'there' },
      { index: 1, name: 'judge' },
    ],
    sourceFiles: [
      {
        path: 'checks.json',
        content: JSON.stringify({
          checks: [{ name: 'there', run: 'true' }],
          judges: [{ name: 'judge', rubric: 'Is it kind?' }],
        }),
      },
    ],
  };
  const cases = [
    { ...beside, request: { ...beside.request, validator } },
    { ...judged, request: { ...judged.request, verify: undefined, validator: checks } },
  ];
  const passes = (what: string) => ({
    states: [
      {
        verdicts: ['failed'],
        notes: [`its ${what} untouched: only what is graded beside shows that work was done`],
      },
    ],
  });
  expect(await check(cases, runners, 1)).toMatchObject([passes('verify passes'), passes('checks pass')]);
});

test('a check that repeats names what came out one way and another', async () => {
  const [checked] = await check([planned('flaky', 'true\ngrep -qx right result')], [changing()], 2);
  expect(checked?.states[0]).toMatchObject({ flaky: ['verify 2: grep -qx right result'], asExpected: false });
  expect(checked?.states[0]?.verdicts.toSorted()).toEqual(['failed', 'passed']);
});

test('a case whose time is used up is stopped without a verdict, and the others go on', async () => {
  const caseTimeoutMs = 245_000;
  const late = Promise.withResolvers<void>();
  // The case that begins first is the one that is late.
  const times = [late.promise];
  const clock: Clock = {
    ...systemClock,
    sleep: (ms, signal = new AbortController().signal) =>
      ms === caseTimeoutMs
        ? abortable(times.shift() ?? untilAborted(signal), signal)
        : systemClock.sleep(ms, signal),
  };
  const ended = new Set<string>();
  const onEvent = (event: ActivityEvent) => {
    if (event.kind === 'finished') ended.add(event.trial.which);
    if (event.kind === 'phase' && event.phase === 'verify') ended.add(`${event.trial.which} in verify`);
    if (ended.has('untouched #0') && ended.has('solved #0 in verify')) late.resolve();
  };
  const cases = [
    planned('long', 'if test -e done; then sleep 600; fi\ntest -e done', { solution: 'touch done' }),
    planned('good', 'grep -qx right result', { solution: 'echo right > result' }),
  ];
  const [long, good] = await check(cases, runners, 1, { clock, caseTimeoutMs, onEvent });
  expect(long?.states).toMatchObject([
    { state: 'untouched', verdicts: ['failed'], asExpected: true },
    {
      state: 'solved',
      verdicts: ['void'],
      asExpected: false,
      timedOut: true,
      cause: 'the time of the case, 4 m 05 s (--case-timeout), was used up in verify',
    },
  ]);
  expect(long?.states[0]).not.toHaveProperty('timedOut');
  expect(good?.states).toMatchObject([{ asExpected: true }, { asExpected: true }]);
});
