import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../short-tests.ts';
import { type CliName, cliNames, readStream, recorded, type StreamName } from './recorded-streams.ts';

const numbers = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, index) => `${from + index}\n`).join('');

/**
 * All of them give this for the same commands, but for the newline at the end of an output, which some trim.
 */
const edges = [
  { command: 'true', exitCode: 0, output: '' },
  { command: 'exit 3', exitCode: 3, output: '' },
  { command: 'echo out; echo err >&2; exit 4', exitCode: 4, output: 'out\nerr' },
  { command: 'seq 1 12000; exit 5', exitCode: 5 },
  { command: 'echo a', exitCode: 0, output: 'a' },
  { command: 'echo b; false', exitCode: 1, output: 'b' },
  { command: "printf 'Command exited with code 9'", exitCode: 0, output: 'Command exited with code 9' },
  {
    command: "printf 'line1\\nline2\\n' && cat <<'X'\nhe said \"$HOME\" 'x'\nX",
    exitCode: 0,
    output: 'line1\nline2\nhe said "$HOME" \'x\'',
  },
  { command: 'cd /tmp', exitCode: 0, output: '' },
];

/** A member that a newer version might name otherwise, in a line that counts. */
const renamed: Record<CliName, [from: string, to: string]> = {
  'claude-code': ['"is_error":false,"num_turns"', '"failed":false,"num_turns"'],
  cline: ['"aggregateUsage"', '"allUsage"'],
  codex: ['"aggregated_output"', '"output"'],
  copilot: ['"toolCallId"', '"callId"'],
  'gemini-cli': ['"total_tokens"', '"totalTokens"'],
  opencode: ['"tokens"', '"usage"'],
  pi: ['"toolCallId"', '"callId"'],
  'qwen-code': ['"total_tokens":440', '"total_tokens":"440"'],
  'mini-swe-agent': ['"output": "', '"text": "'],
};

describe.each(cliNames)('the stream of %s', (cli) => {
  const whole = (name: StreamName) => readStream(cli, [recorded(cli, name)]);

  test('gives commands with their exit codes and outputs, whatever these look like', () => {
    const { record, ending } = whole('edges');
    expect(ending).toEqual({ ended: 'exited', exitCode: 0 });
    expect(record.trajectory.map(({ command, exitCode }) => ({ command, exitCode }))).toEqual(
      edges.map(({ command, exitCode }) => ({ command, exitCode })),
    );
    for (const [index, { output }] of edges.entries()) {
      const entry = record.trajectory[index];
      if (output !== undefined) {
        expect(entry?.output?.trimEnd()).toBe(output);
        expect(entry?.outputTruncated).toBe(false);
      }
    }
    expect(record.finalMessage).toBe('End.');
  });

  test('says of an output whether it is whole', () => {
    const entry = whole('edges').record.trajectory[3];
    const isWhole = entry?.output?.trimEnd() === numbers(1, 12_000).trimEnd();
    expect(entry?.outputTruncated).toBe(!isWhole);
    expect(entry?.output?.split('\n').length).toBeGreaterThan(500);
  });

  test('keeps calls of other tools, with how they ended', () => {
    const { events } = whole('edges').record;
    const tools = events.filter((event) => event.kind === 'tool' && event.name !== 'submit');
    // Codex and mini-swe-agent tell of no tool that they do not have.
    if (cli === 'codex' || cli === 'mini-swe-agent') return expect(tools).toEqual([]);
    expect(tools).toMatchObject([
      { input: expect.anything(), output: expect.stringContaining('no_such_tool') },
    ]);
  });

  test('names its conversation, which it goes on with', () => {
    const { sessionId } = whole('session').record;
    expect(sessionId).toMatch(/^[\w-]{20,}$/);
    // Cline cannot go on with one.
    if (cli === 'cline') return;
    expect(whole('resumed').record).toMatchObject({ sessionId, finalMessage: 'It is still there.' });
  });

  test('tells a model that refused from an agent that failed', () => {
    const { record, ending } = whole('refused');
    expect(ending).toMatchObject({ ended: 'model-failed', message: expect.stringContaining('no more') });
    expect(record.trajectory).toMatchObject([{ command: 'echo before', exitCode: 0 }]);
  });

  test('is read the same however its chunks fall', () => {
    const bytes = recorded(cli, 'session');
    const { record, ending } = whole('session');
    const cuts = fc.array(fc.nat(bytes.length), { maxLength: 40 });
    fc.assert(
      fc.property(cuts, (positions) => {
        const sorted = [0, ...positions.toSorted((one, other) => one - other), bytes.length];
        const chunks = sorted.slice(1).map((end, index) => bytes.subarray(sorted[index], end));
        const read = readStream(cli, chunks);
        expect(read.ending).toEqual(ending);
        expect(read.record).toEqual(record);
      }),
      { numRuns: runs(60) },
    );
  });

  test('that is cut at any byte gives what came before, and never a success', () => {
    const bytes = recorded(cli, 'session');
    const commands = whole('session').record.trajectory.map(({ command }) => command);
    // Where the last line that counts ends is where success is told; that line may be one of several.
    fc.assert(
      fc.property(fc.nat(bytes.length - 2), (length) => {
        const { record, ending } = readStream(cli, [bytes.subarray(0, length)]);
        const read = record.trajectory.map(({ command }) => command);
        expect(commands.slice(0, read.length)).toEqual(read);
        const isWhole = bytes.subarray(length).toString().trim() === '';
        if (!isWhole) expect(ending.ended).toBe('runner-broke');
      }),
      { numRuns: runs(150) },
    );
  });

  test('of a shape that is not known is not trusted', () => {
    const [from, to] = renamed[cli];
    const text = recorded(cli, 'session').toString();
    const changed = text.replaceAll(from, to);
    expect(changed).not.toBe(text);
    const { ending } = readStream(cli, [Buffer.from(changed)]);
    expect(ending).toMatchObject({
      ended: 'runner-broke',
      message: expect.stringContaining('cannot read'),
    });
  });

  test('with lines of types that are not known, and lines that are no JSON, is read for the rest', () => {
    const { ending, record } = whole('session');
    const lines = recorded(cli, 'session').toString().split('\n');
    const strange = '{"type":"of-a-newer-version","sessionID":"ses_1","timestamp":1}\nWARNING: hello\n{"cut';
    const read = readStream(cli, [Buffer.from(lines.map((line) => `${line}\n${strange}\n`).join(''))]);
    expect(read.ending).toEqual(ending);
    expect(read.record.trajectory).toEqual(record.trajectory);
  });
});

test('Claude Code at its limit of turns has failed as an agent', () => {
  const { ending } = readStream('claude-code', [recorded('claude-code', 'turn-limit')]);
  expect(ending).toMatchObject({ ended: 'agent-failed', message: expect.stringContaining('turns (2)') });
});
