import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { describe, expect, test } from 'vitest';
import { profileOf } from '../../src/suite/plan.ts';
import { reportOf } from '../../src/trial/report.ts';
import { fixtureCli } from '../trial/fixture-cli.ts';
import { sayingHello, scriptedModels } from '../trial/scripted-models.ts';
import { openTrialBench } from '../trial/trial-bench.ts';

/** MiB of the process's heap, as `--max-old-space-size` has it. */
const heapMiB = 256;
/** Characters of what a turn's record may come to as JSON, with such a heap. */
const recordChars = 8 * 2 ** 20;
/** Milliseconds; only a hang reaches them. */
const timeout = 300_000;

const program = fileURLToPath(new URL('./stream-program.ts', import.meta.url));

/** What comes of a stream in a process of its own, so that what ends it is seen as the end of a process. */
async function outcomeOf(attack: string) {
  const { stdout } = await execa(process.execPath, [`--max-old-space-size=${heapMiB}`, program, attack]);
  return JSON.parse(stdout);
}

const unreadable = {
  ended: 'agent-failed',
  exitCode: 0,
  message: expect.stringContaining('too large to be read'),
};

describe.concurrent(`with a heap of ${heapMiB} MiB a harness does not end the process by printing`, () => {
  test.each(['values in one line', 'parts of a message', 'a line of 30 MB', 'a line without an end'])(
    '%s, which is the failure of its agent',
    { timeout },
    async (attack) => {
      expect(await outcomeOf(attack)).toMatchObject({ ending: unreadable, isWhole: false });
    },
  );

  test.each(['messages', 'tools', 'commands', 'short messages', 'long ids', 'commands of a profile'])(
    '%s without end, of which the first are kept',
    { timeout },
    async (attack) => {
      const { ending, isWhole, size, final } = await outcomeOf(attack);
      expect({ ending, isWhole, final }).toEqual({
        ending: { ended: 'exited', exitCode: 0 },
        isWhole: false,
        final: 'the end',
      });
      expect(size).toBeLessThan(recordChars);
    },
  );
});

describe.concurrent(`with a heap of ${heapMiB} MiB nobody ends the process`, () => {
  test.each([
    ['a validator by records of values', 'records of values', 'more than the limit'],
    ['a validator by a record with a million mistakes', 'parts of a record', 'too many values'],
  ])('%s', { timeout }, async (_, attack, problem) => {
    expect(await outcomeOf(attack)).toEqual({ taken: 0, problem: expect.stringContaining(problem) });
  });

  test.each([
    ['a harness', 'a line in crumbs', { isWhole: true }],
    ['a validator', 'a record in crumbs', { taken: 0 }],
  ])('%s by a line of which each byte comes by itself', { timeout }, async (_, attack, outcome) => {
    expect(await outcomeOf(attack)).toMatchObject(outcome);
  });

  test('an agent of the Agent Client Protocol by updates without end', { timeout }, async () => {
    const { size, ...outcome } = await outcomeOf("an agent's updates");
    expect(outcome).toEqual({ isWhole: false, final: 'the end' });
    expect(size).toBeLessThan(recordChars);
  });

  test('an agent of the Agent Client Protocol by requests without end', { timeout }, async () => {
    expect(await outcomeOf("an agent's requests")).toMatchObject({ broken: 'does not read what it is sent' });
  });

  test('a command by output of which each byte comes by itself', { timeout }, async () => {
    expect(await outcomeOf('output in crumbs')).toEqual(Array.from({ length: 8 }, () => 2 ** 20));
  });

  test('an agent by what the engine answers of it', { timeout }, async () => {
    expect(await outcomeOf("an engine's answer")).toEqual({ code: 'ENGINE_ANSWER_TOO_LARGE' });
  });

  test('an agent by making a million files, of which the first are listed', { timeout }, async () => {
    expect(await outcomeOf('changes')).toEqual({ isSome: true, isCut: true });
  });
});

/** More than any heap lets a line have. */
const hugeLine = "head -c 40M /dev/zero | tr '\\0' x; echo";
const deepLine = (levels: number) =>
  `python3 -c 'n = ${levels}; print("{\\"type\\":\\"tool\\",\\"input\\":" + "[" * n + "]" * n + "}")'`;
const tooLarge = 'too large to be read';
const tooDeep = 'nested too deep to be read';
const { model: modelConfig } = scriptedModels({ model: sayingHello });

test.each([
  [`${tooLarge} and says that all is well`, `${hugeLine}; echo '{"type":"end"}'`, tooLarge],
  [`${tooLarge} and says no more`, hugeLine, tooLarge],
  [
    `${tooLarge} and what no version of it prints`,
    `${hugeLine}; echo '{"type":"offsite/version"}'`,
    tooLarge,
  ],
  ...[257, 3_000, 6_000, 100_000].map((levels) => [
    `of ${levels} levels and says that all is well`,
    `${deepLine(levels)}; echo '{"type":"end"}'`,
    tooDeep,
  ]),
] as [string, string, string][])(
  'a harness that prints a line %s neither passes nor has no verdict',
  { timeout },
  async (_, run, reason) => {
    await using bench = await openTrialBench({ models: { model: modelConfig }, runners: [fixtureCli] });
    const profile = profileOf({ name: 'test', run: `eval "$ASK"; ${run}` });
    const spec = { model: 'model', modelConfig, harness: 'fixture-cli', profile, verify: 'test -e done' };
    const result = await bench.trial('', spec);
    expect(result).toMatchObject({
      verdict: 'failed',
      cause: { kind: 'agent', phase: 'harness', message: expect.stringContaining(reason) },
      commandsCut: true,
    });
    const subject = { caseName: 'A', taskIndex: 0, ordinal: 0, model: 'model', sessionId: 's' };
    expect(reportOf(result, subject).outcome.voidFields).toEqual(
      expect.arrayContaining(['commandCount', 'sandboxMs']),
    );
  },
);
