import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { BatchSummary } from '../../../src/cli/output/summary.ts';
import { connectEngine } from '../../../src/engine/connect.ts';
import { recordVersion } from '../../../src/record/trial-record.ts';
import { containersOnce } from '../containers.ts';
import { offsite, start, startInTerminal } from '../offsite.ts';
import { openPlace, type Place } from '../place.ts';

let place: Place;
let summary: BatchSummary;
let printed: string;

const verify = `node -e "require('assert').strictEqual(require('fs').readFileSync('answer.txt', 'utf8'), '42\\\\n')"`;

/** The test's own, so that no other trial uses its image. */
const prepare = 'printf "start\\n41\\n" > answer.txt; printf "old" > gone.txt; ln -s answer.txt link';

beforeAll(async () => {
  place = openPlace();
  const suite = place.suite({
    cases: [
      {
        id: 'answer',
        prepare: `: ${randomUUID()}\n${prepare}`,
        variables: {
          act:
            'printf "start\\n43\\n" > answer.txt; rm gone.txt; ln -sf /etc/passwd link; mkdir -p out; ' +
            'head -c 2000 /dev/urandom > out/kept.bin; printf "\\0\\0" > lost.bin; chmod 750 answer.txt',
        },
        artifacts: ['out/**'],
        verify: `echo checking\n${verify}`,
      },
      { id: 'fine', verify: 'true' },
    ],
    sandbox: { disk: '64m' },
  });
  const ran = await offsite(place, ['run', suite, '--json']);
  summary = JSON.parse(ran.stdout) as BatchSummary;
  printed = ran.stderr;
});
afterAll(() => place?.[Symbol.dispose]());

test('the document of a run names what each trial left, and where the whole record is', () => {
  const trial = summary.runs[0]?.trials[0];
  expect(trial?.verifySteps).toMatchObject([
    { command: 'echo checking', exitCode: 0, output: 'checking\n' },
    { exitCode: 1, output: expect.stringContaining('AssertionError') },
  ]);
  expect(trial?.attempts).toMatchObject([{ number: 1, ending: 'failed' }]);
  expect(JSON.parse(readFileSync(trial?.record?.path ?? '', 'utf8'))).toMatchObject({ verdict: 'failed' });
  const kept = trial?.artifacts?.find(({ path }) => path === 'out/kept.bin');
  expect(readFileSync(kept?.blob ?? '')).toHaveLength(2000);
  // Only the document is on stdout.
  expect(printed).toContain('see why: offsite show ');
});

test('the last batch is shown with the reason of the trial that failed', async () => {
  const { stdout, exitCode } = await offsite(place, ['show']);
  expect(exitCode).toBe(0);
  expect(stdout).toMatch(
    /\n✗ answer\/worker#0 {2}verify: node -e .* exited 1: AssertionError \[ERR_ASSERTION\]: Expected/,
  );
  expect(stdout).toContain('see one: offsite show answer/worker#0');
  expect((await offsite(place, ['show', 'last'])).stdout).toBe(stdout);
  const { stdout: batches } = await offsite(place, ['data', 'batches']);
  expect(batches).toMatch(/^batch .*\n\S{8} {2}\d{4}-\d\d-\d\d \d\d:\d\d {2}small {2}worker +1 +1 +50 % /);
});

test('a trial shows the reason, the output of the command that failed, and the diff on the first screen', async () => {
  const { stdout } = await offsite(place, ['show', 'answer/worker#0']);
  const screen = stdout.split('\n').slice(0, 44).join('\n');
  expect(screen).toMatch(/^✗ answer · worker #0 {2}failed/);
  expect(screen).toMatch(/why\n {2}verify: node -e .* exited 1: AssertionError/);
  expect(screen).toMatch(/│ .*AssertionError \[ERR_ASSERTION\]/);
  expect(screen).toMatch(
    /M answer\.txt {2}\+1 −1 mode 0644 → 0750\n {4}│ @@ .*\n {4}│ {2}start\n {4}│ -41\n {4}│ \+43/,
  );
});

test('the document of a trial has everything, with the paths of contents', async () => {
  const { stdout } = await offsite(place, ['show', 'answer/worker#0', '--json']);
  const document = JSON.parse(stdout);
  expect(document).toMatchObject({
    run: { caseId: 'answer', variant: 'worker' },
    attempts: [{ number: 1 }],
    record: { version: recordVersion, verdict: 'failed' },
  });
  const { after } = document.diff.find(({ path }: { path: string }) => path === 'answer.txt');
  expect(readFileSync(after.blob, 'utf8')).toBe('start\n43\n');
  const part = await offsite(place, ['show', 'answer/worker#0', '--json', '--verify']);
  expect(Object.keys(JSON.parse(part.stdout))).toContain('verifySteps');
  expect(Object.keys(JSON.parse(part.stdout))).not.toContain('diff');
});

test('artifacts are listed and written', async () => {
  const out = mkdtempSync(join(place.folder, 'out-'));
  const { stdout, stderr } = await offsite(place, ['trial', 'artifacts', 'answer/worker#0']);
  expect(stderr).toMatch(/^batch batch_\S+ of \S.*, the last one\n/);
  expect(stdout).toMatch(/out\/kept\.bin +2\.0 KiB {2}[0-9a-f]{64}/);
  const written = await offsite(place, ['trial', 'artifacts', 'answer/worker#0', '--out', out]);
  expect(written.stdout).toContain(join(out, 'out/kept.bin'));
  expect(readFileSync(join(out, 'out/kept.bin'))).toHaveLength(2000);
  const again = await offsite(place, ['trial', 'artifacts', 'answer/worker#0', '--out', out]);
  expect(again).toMatchObject({
    exitCode: 2,
    stderr: expect.stringMatching(/, the last one\nerror: 0 of \d artifacts written/),
  });
  rmSync(out, { recursive: true });
});

/** `less` is not there on every machine, so the pager is another program. */
const isPaged = (lines: string[]) => lines.length > 1 && lines.every((line) => /^paged: /.test(line));

test('on a terminal a pager shows it, unless somebody asks for none', async () => {
  const shown = async (args: string[], env: Record<string, string>) => {
    const { screen, ended } = startInTerminal(place, args, { env, columns: 250, rows: 80 });
    expect(await ended).toBe(0);
    return (await screen.lines()).filter((line) => line !== '');
  };
  const pager = "sed 's/^/paged: /'";
  for (const args of [['show', 'fine/worker#0'], ['show'], ['data', 'batches']]) {
    expect(await shown(args, { PAGER: pager })).toSatisfy(isPaged);
    expect(await shown(args, { PAGER: 'false', OFFSITE_PAGER: pager })).toSatisfy(isPaged);
    const plain = await shown([...args, '--no-pager'], { PAGER: pager });
    expect(plain.length).toBeGreaterThan(1);
    expect(plain.join()).not.toContain('paged');
  }
  expect((await shown(['show'], { PAGER: 'offsite-no-such-pager' })).join()).toContain('pass rate');
});

/** No sandbox of a shell is left. */
const nothingLeft = () =>
  containersOnce([`offsite.run=${summary.runs[0]?.id}`], (containers) => containers.length === 0);

describe('a shell', () => {
  /** `offsite` with arguments that come before `--`. */
  const shell = (...command: string[]) => {
    const args = ['trial', 'shell', '--data-folder', place.dataFolder, 'answer/worker#0', '--', ...command];
    return offsite(place, args, { dataFolder: null });
  };

  test('has the whole workspace, while that is kept', async () => {
    const { stdout, stderr, exitCode } = await shell(
      'sh',
      '-c',
      'cat answer.txt; wc -c < lost.bin; ls gone.txt',
    );
    expect(exitCode).toBe(2);
    expect(stdout).toBe('start\n43\n2\n');
    expect(stderr).not.toContain('not restored');
    await offsite(place, ['data', 'workspaces', '--free']);
    await nothingLeft();
  });

  test('runs a command in the workspace as the record has it, without a network', async () => {
    const look =
      'cat answer.txt; ls; readlink link; stat -c %a answer.txt; wc -c < out/kept.bin; cat /proc/net/dev; exit 7';
    const { stdout, stderr, exitCode } = await shell('bash', '-c', look);
    expect(exitCode).toBe(7);
    expect(stdout).toMatch(/^start\n43\nanswer\.txt\nlink\nout\n\/etc\/passwd\n750\n2000\n/);
    expect(stdout.match(/\w+:/g)).toEqual(['lo:']);
    expect(stderr).toContain('not restored: lost.bin: it is not text');
    await nothingLeft();
  });

  test('prints what a command writes so that it cannot steer a terminal or a CI system', async () => {
    const { stdout } = await shell('bash', '-c', 'printf "\\033[2J\\n::error::x\\nplain\\n  indented"');
    expect(stdout).toBe('\\u{1b}[2J\n│ ::error::x\nplain\n  indented\n');
  });

  test('without a terminal and a command says what to type', async () => {
    const { stderr, exitCode } = await offsite(place, ['trial', 'shell', 'answer/worker#0']);
    expect(exitCode).toBe(2);
    expect(stderr).toContain('offsite trial shell TRIAL -- ls -la');
  });

  test.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)('is removed at a %s', async (name) => {
    const args = [
      'trial',
      'shell',
      '--data-folder',
      place.dataFolder,
      'answer/worker#0',
      '--',
      'bash',
      '-c',
      'echo up; sleep 600',
    ];
    const running = start(place, args, { dataFolder: null });
    await running.printed(/up\n/);
    running.kill(name);
    expect(await running.ended).toMatchObject({ exitCode: 130 });
    await nothingLeft();
  });

  test('on a terminal has keys, a size, and ends with exit', async () => {
    const { screen, type, ended } = startInTerminal(place, ['trial', 'shell', 'answer/worker#0'], {
      columns: 91,
      rows: 23,
    });
    const shown = async () => (await screen.lines()).join('\n');
    await expect.poll(shown).toMatch(/as the agent left it[\s\S]*[#$] *$/);
    type('stty size; tail -n 1 answer.txt\r');
    await expect.poll(shown).toMatch(/\n23 91\n43\n/);
    type('sleep 600\r');
    await expect.poll(shown).toMatch(/sleep 600$/);
    type('\u0003');
    type('echo "after $?"\r');
    await expect.poll(shown).toMatch(/\nafter 130\n/);
    type('exit 4\r');
    expect(await ended).toBe(4);
    await nothingLeft();
  });

  test('is removed when its terminal is closed', async () => {
    const { screen, close, ended } = startInTerminal(place, ['trial', 'shell', 'answer/worker#0']);
    await expect
      .poll(async () => (await screen.lines()).join('\n'))
      .toMatch(/as the agent left it[\s\S]*[#$] *$/);
    close();
    await ended;
    await nothingLeft();
  });

  test('says how to get the image again when it is gone', async () => {
    const { imageId } = JSON.parse(readFileSync(summary.runs[0]?.trials[0]?.record?.path ?? '', 'utf8'));
    await using engine = await connectEngine({ instance: `test-shell-${process.pid}` });
    // The last shell may still be removing its marker, which uses the image too.
    await vi.waitFor(() => engine.port.remove('image', imageId), { timeout: 30_000, interval: 200 });
    const { stderr, exitCode } = await shell('true');
    expect(exitCode).toBe(2);
    expect(stderr).toMatch(/no longer has sha256:.*\n {2}Run `offsite run .*suite\.yaml` again/);
  });
});
