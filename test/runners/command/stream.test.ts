import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { command } from '../../../runners/command/runner.ts';
import { streams } from '../../../runners/streams.ts';
import { timelineSection } from '../../../src/cli/show/timeline.ts';

import { type Profile, profileOf } from '../../../src/suite/plan.ts';
import { StreamLine } from '../../../src/suite/stream-line.ts';
import { plainText } from '../../../src/text/output.ts';
import { ours } from '../../../src/text/printable.ts';
import { reportOf } from '../../../src/trial/report.ts';
import type { TrialSpec } from '../../../src/trial/spec.ts';
import { sayingHello, scriptedModels } from '../../trial/scripted-models.ts';
import { openTrialBench, type TrialBench, timeouts } from '../../trial/trial-bench.ts';
import { readStream, recorded } from '../recorded-streams.ts';

let bench: TrialBench;
const { model: modelConfig } = scriptedModels({ model: sayingHello });
beforeAll(async () => {
  bench = await openTrialBench({ models: { model: modelConfig } });
});
afterAll(() => bench?.[Symbol.asyncDispose]());

const timeout = 120_000;
const subject = { caseName: 'A', taskIndex: 0, ordinal: 0, model: 'model', sessionId: 's' };

function trial(run: string, profile: Partial<Profile>, change: Partial<TrialSpec> = {}) {
  return bench.trial(
    '',
    { profile: profileOf({ name: 'own', run, ...profile }), verify: 'true', ...change },
    change.modelConfig && { memory: 512 * 1024 ** 2 },
  );
}

const lines = (...all: object[]) => all.map((line) => `echo '${JSON.stringify(line)}'`).join('\n');

/** A client that asks the model, and then again with a command of the model and its result. */
const asking = `ask() { curl -sS -o /dev/null -H "authorization: Bearer $OPENAI_API_KEY" \\
  -H 'content-type: application/json' -d "$1" "$OPENAI_BASE_URL/chat/completions"; }
ask '{"model":"model","messages":[{"role":"user","content":"go"}]}'
ask '{"model":"model","messages":[{"role":"user","content":"go"},{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"sh","arguments":"{\\"command\\":\\"make all\\"}"}}]},{"role":"tool","tool_call_id":"1","content":"built"}]}'`;

describe.concurrent('a command profile with a stream', { timeout }, () => {
  // What each of them prints is read in streams.test.ts.
  test.each(['codex', 'claude-code'] as const)('reads a program that prints what %s prints', async (name) => {
    const { record } = readStream(name, [recorded(name, 'session')]);
    const result = await trial(`cd /\ncat /opt/printed`, {
      stream: name,
      files: [{ path: '/opt/printed', content: recorded(name, 'session') }],
    });
    expect(result).toMatchObject({
      verdict: 'passed',
      harness: { ended: 'exited', exitCode: 0 },
      harnessTellsCommands: true,
      harnessVersion: record.version,
      harnessCounts: { usage: record.usage },
      finalMessage: record.finalMessage,
    });
    const reported = result.trajectory?.map((entry) => [entry.command, entry.exitCode, entry.output]);
    expect(reported).toEqual(record.trajectory.map((entry) => [entry.command, entry.exitCode, entry.output]));
    expect(reported?.length).toBeGreaterThan(1);
  });

  test('jsonl tells commands, tools, messages, usage, version and ending', async () => {
    const run = lines(
      { type: 'session', version: '1.2.3' },
      { type: 'command', command: 'make', exitCode: 2, output: 'no rule', outputTruncated: true },
      { type: 'command', id: 'a', command: 'sleep 5' },
      { type: 'tool', id: 'b', name: 'edit', input: { path: 'x' } },
      { type: 'result', id: 'a', exitCode: 0, output: 'slept' },
      { type: 'result', id: 'b', failed: true, output: 'no such file' },
      { type: 'command', id: 'c', command: 'never ends' },
      { type: 'note', text: 'thinking' },
      { type: 'of a later version' },
      { type: 'message', text: 'Almost.' },
      { type: 'message', text: 'Done.' },
      { type: 'usage', inputTokens: 10, outputTokens: 2, cacheReadTokens: 4 },
      { type: 'usage', inputTokens: 20, outputTokens: 3, cacheReadTokens: 9 },
      { type: 'end', status: 'done' },
    );
    const result = await trial(`${run}\necho to-stderr >&2\nexit 3`, { stream: 'jsonl' });
    expect(result).toMatchObject({
      verdict: 'passed',
      harness: { ended: 'exited', exitCode: 3 },
      harnessVersion: '1.2.3',
      harnessCounts: {
        usage: { inputTokens: 30, outputTokens: 5, totalTokens: 35, cacheReadTokens: 13 },
      },
      finalMessage: 'Done.',
      trajectory: [
        { command: 'make', exitCode: 2, output: 'no rule', outputTruncated: true },
        { command: 'sleep 5', exitCode: 0, output: 'slept', outputTruncated: false },
        { command: 'never ends' },
      ],
    });
    expect(result.trajectory?.[2]).not.toHaveProperty('exitCode');
    const rest = result.events?.filter(({ kind }) => kind !== 'user');
    expect(rest).toMatchObject([
      { kind: 'tool', name: 'edit', input: { path: 'x' }, output: 'no such file', failed: true },
      { kind: 'note', text: 'thinking' },
      { kind: 'message', text: 'Almost.' },
      { kind: 'message', text: 'Done.' },
    ]);
    expect(reportOf(result, subject).outcome).toMatchObject({ commandCount: 3, exitCode: 3 });
  });

  /** A program whose clock is `hours` off, and which measures a command of one second by it. */
  const measured = (hours: number) => `now() { echo $(($(date +%s%3N) + ${hours} * 3600000)); }
began=$(now); sleep 1; ended=$(now)
echo '{"type":"command","command":"sleep 1","exitCode":0,"startedAt":'$began',"finishedAt":'$ended'}'
echo $((ended - began)) >&2`;

  test.each([2, -2])('keeps durations of a clock that is %s hours off', async (hours) => {
    const result = await trial(measured(hours), { stream: 'jsonl' });
    const { sandboxMs, voidFields } = reportOf(result, subject).outcome;
    expect(sandboxMs).toBe(Number(result.harnessOutput?.trim().split('\n').at(-1)));
    expect(voidFields).not.toContain('sandboxMs');
    const phase = result.phases.find(({ name }) => name === 'harness');
    const { startedAtMillis = 0, finishedAtMillis = 0 } = result.trajectory?.[0] ?? {};
    expect(startedAtMillis).toBeGreaterThanOrEqual(phase?.startedAt ?? Number.NaN);
    expect(finishedAtMillis).toBeLessThanOrEqual((phase?.startedAt ?? 0) + (phase?.durationMs ?? 0));
  });

  test('says what it knows of a command only by the arrival of lines', async () => {
    const run = `echo '{"type":"command","id":"a","command":"sleep 1"}'; sleep 1
echo '{"type":"result","id":"a","exitCode":0}'`;
    const result = await trial(run, { stream: 'jsonl' });
    expect(result.trajectory).toMatchObject([{ command: 'sleep 1', timesBy: 'arrival' }]);
    const { outcome, events } = reportOf(result, subject);
    expect(outcome.sandboxMs).toBeGreaterThan(500);
    expect(events).toContainEqual({ _tag: 'TimesByArrival', fields: ['sandboxMs'] });
    expect(JSON.stringify(events)).not.toContain('timesBy');
    expect(plainText(timelineSection(result) ?? ours(''))).toMatch(/command +sleep 1 +about \d/);
  });

  test.each([
    ['that did not happen in the turn', measured(0).replace('ended=$(now)', 'ended=$(($(now) + 7200000))')],
    ['of which only the end is known', `echo '{"type":"command","command":"sleep 1","exitCode":0}'`],
  ])('does not measure a command %s', async (_, run) => {
    const result = await trial(run, { stream: 'jsonl' });
    expect(result.trajectory).toMatchObject([{ command: 'sleep 1', exitCode: 0 }]);
    expect(result.trajectory?.[0]).not.toHaveProperty('startedAtMillis');
    const { outcome } = reportOf(result, subject);
    expect(outcome.voidFields).toContain('sandboxMs');
    expect(outcome).not.toHaveProperty('sandboxMs');
  });

  test('gives the whole script to one shell, whose programs read end-of-file', async () => {
    const run = `f() {
  printf '{"type":"message","text":"%s"}\\n' "$1"
}
f "stdin: $(cat)"
f "$__offsite_script|$OFFSITE_PROMPT|$PWD"`;
    const result = await trial(run, { stream: 'jsonl' });
    const texts = result.events?.map((event) => (event.kind === 'message' ? event.text : ''));
    expect(texts).toEqual(['', 'stdin: ', '|Do it.|/workspace']);
    // Without an `end`, the exit code counts.
    expect(result).toMatchObject({ verdict: 'passed', harness: { ended: 'exited', exitCode: 0 } });
    expect(result.trajectory).toEqual([]);
  });

  test.each([
    [
      'says that its model failed, which no gateway saw',
      lines({ type: 'end', status: 'model-failed', message: 'overloaded' }),
      'overloaded',
    ],
    ['is killed', 'kill -9 $$', 'ended by a signal'],
    ['prints 40 MB in one line', "head -c 40M /dev/zero | tr '\\0' x; echo", 'too large to be read'],
  ])('fails by its own fault if its program %s', async (_, run, message) => {
    const result = await trial(run, { stream: 'jsonl' }, { verify: 'false' });
    expect(result).toMatchObject({
      verdict: 'failed',
      cause: { kind: 'agent', phase: 'harness', message: expect.stringContaining(message) },
    });
  });

  test('fails by its own fault if the stream of a CLI does not end', async () => {
    const result = await trial('codex exec --json', { stream: 'codex' }, { verify: 'false' });
    expect(result).toMatchObject({
      verdict: 'failed',
      harness: { ended: 'runner-broke', message: expect.stringContaining('codex: command not found') },
      cause: { kind: 'agent' },
    });
  });

  test('keeps what was told before its time was up', async () => {
    const run = `${lines({ type: 'command', id: 'a', command: 'sleep 600' })}\nsleep 600`;
    const result = await bench.trial(
      '',
      { profile: profileOf({ name: 'own', run, stream: 'jsonl' }), verify: 'true' },
      { timeouts: { ...timeouts, harness: 3_000 } },
    );
    expect(result).toMatchObject({
      harness: { ended: 'timed-out', afterMs: 3_000 },
      trajectory: [{ command: 'sleep 600' }],
    });
  });
});

describe.concurrent('the commands of a command profile', { timeout }, () => {
  const model = {
    model: 'model',
    get modelConfig() {
      return modelConfig;
    },
  };

  test('are those of the model traffic with trajectory: wire', async () => {
    const result = await trial(asking, { trajectory: 'wire' }, model);
    expect(result).toMatchObject({ verdict: 'passed', trajectory: [], harnessTellsCommands: false });
    expect(reportOf(result, subject)).toMatchObject({
      events: [{ _tag: 'Started' }, { _tag: 'TimesByArrival' }, { command: 'make all', output: 'built' }],
      outcome: { commandCount: 1 },
    });
  });

  test('are none with trajectory: wire if the traffic shows none, and the output is kept', async () => {
    const result = await trial('echo one\necho two', { trajectory: 'wire' }, model);
    expect(result.harnessOutput).toBe('one\ntwo');
    expect(reportOf(result, subject).outcome).toMatchObject({ commandCount: 0 });
  });

  test('are not known with trajectory: none', async () => {
    const result = await trial(asking, { trajectory: 'none' }, model);
    expect(result).toMatchObject({ verdict: 'passed', models: { usage: [{ role: 'agent' }] } });
    const { events, outcome } = reportOf(result, subject);
    expect(events).toHaveLength(1);
    expect(outcome).not.toHaveProperty('commandCount');
    expect(outcome.voidFields).toEqual(expect.arrayContaining(['commandCount', 'sandboxMs']));
  });

  test('are those of the model traffic for a stream of messages, with trajectory: wire', async () => {
    const run = `${asking}\n${lines({ type: 'message', text: 'Built.' })}`;
    const result = await trial(run, { stream: 'jsonl', trajectory: 'wire' }, model);
    expect(result).toMatchObject({ finalMessage: 'Built.', derivedTrajectory: [{ command: 'make all' }] });
    expect(reportOf(result, subject).outcome).toMatchObject({ commandCount: 1 });
  });
});

test.each([
  [{ type: 'end', status: 'failed', message: 'gave up' }, 'agent-failed', 'gave up'],
  [{ type: 'usage', inputTokens: -1, outputTokens: 1 }, 'runner-broke', 'cannot read'],
])('a turn that prints %j has not ended well', (line, ended, message) => {
  const { ending } = readStream('jsonl', [Buffer.from(`${JSON.stringify(line)}\n`)]);
  expect(ending).toMatchObject({ ended, message: expect.stringContaining(message) });
});

test('the lines that docs/reference/harnesses.md shows are lines of the schema', () => {
  const page = readFileSync(new URL('../../../docs/reference/harnesses.md', import.meta.url), 'utf8');
  const [, shown = ''] = /```jsonl\n(\{"type":"session"[\s\S]*?)```/.exec(page) ?? [];
  const types = shown
    .trim()
    .split('\n')
    .map((line) => StreamLine.parse(JSON.parse(line)).type);
  expect(types.toSorted()).toEqual(
    expect.arrayContaining(StreamLine.options.map(({ shape }) => shape.type.value)),
  );
});

test('every CLI whose stream is read is a stream of a profile', () => {
  const names = command.streams?.map(({ name }) => name);
  expect(names).toEqual([...Object.keys(streams), 'jsonl']);
});
