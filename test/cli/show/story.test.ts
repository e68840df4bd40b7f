import { expect, test } from 'vitest';
import { trialDocument } from '../../../src/cli/commands/show.ts';
import { batchView, readBatch } from '../../../src/cli/show/batch-view.ts';
import { openTrial } from '../../../src/cli/show/open-trial.ts';
import { parts, partsOf, storyOf } from '../../../src/cli/show/story.ts';
import { lastBatch } from '../../../src/ledger/find.ts';
import type { FileChange } from '../../../src/record/files.ts';
import type { TrialRecord } from '../../../src/record/trial-record.ts';
import { Output, plainText } from '../../../src/text/output.ts';
import { harmIn, hostileName, hostileText } from '../../hostile/hostile-text.ts';
import { failed, type KeptLedger, keptLedger, longOutput, passed } from './kept-ledger.ts';

const at = passed.startedAt;
const account = { usage: [], exchanges: [], connections: [], modelMs: 0, agent: { acted: true } };

async function story(kept: KeptLedger, result: Partial<TrialRecord>): Promise<string> {
  await kept.add('batch_one', { a: [result] });
  return plainText(storyOf(openTrial(kept.ledger, 'a#0')));
}

test('a story lists what had changed outside the workspace', async () => {
  using kept = keptLedger();
  const paths = ['/etc/hosts', ...Array.from({ length: 20 }, (_, index) => `/opt/${index}`)];
  const shown = await story(kept, {
    systemChanges: { kept: { paths: [], count: 0 }, unexpected: { paths, count: 30 } },
  });
  expect(shown).toMatch(/^changed outside the workspace {2}30\n {2}\/etc\/hosts\n {2}\/opt\/0\n/m);
  expect(shown).toContain('  … and 9 more\n  … and 9 more, whose names were not kept');
  const whole = plainText(partsOf(openTrial(kept.ledger, 'a#0'), ['diff']));
  expect(whole).toContain('  /opt/19\n');
});

test('a story begins with the verdict and the reasons, then shows the output of what failed', async () => {
  using kept = keptLedger();
  const lines = (await story(kept, failed)).split('\n');
  expect(lines[0]).toMatch(/^✗ a · v #0 {2}failed {2}2\.0 s, /);
  expect(lines.slice(2, 7)).toEqual([
    'why',
    '  verify: npm test exited 1: AssertionError: 1 is not 2',
    '  validation "is tidy": it is a mess',
    '  judgment "style": 0.4 < 0.7: too clever',
    '',
  ]);
  const first = lines.slice(0, 24).join('\n');
  expect(first).toMatch(/✗ npm test {2}exit 1 {2}1\.2 s\n {4}│ start\n {4}│ line 0\n/);
  expect(first).toMatch(
    /│ … 491 lines left out …\n(.*\n){6} {4}│ AssertionError: 1 is not 2\n {4}│ end\n {2}✓ npm ci/,
  );
});

test('a judgment that is too low is shown once, with the score and the threshold', async () => {
  using kept = keptLedger();
  const shown = await story(kept, {
    verdict: 'failed',
    validations: [
      { id: 'a', index: 0, name: 'good reply', exitCode: 0 },
      { id: 'b', index: 1, name: 'its tone', exitCode: 0 },
    ],
    judgments: [
      { name: 'good reply', score: 0.1, threshold: 0.7, model: 'judge-1', durationMs: 4000 },
      { name: 'its tone', choice: 'friendly', model: 'judge-1' },
    ],
  });
  expect(shown, 'a judge counts once').not.toContain('validations');
  expect(shown).toContain('judgments  1 of 2 failed');
  expect(shown).toContain('✗ good reply  0.1 < 0.7  judge-1  4.0 s\n');
  expect(shown).toContain('✓ its tone  friendly\n');
});

test('the question to a judge is shown with its lines, and not as JSON', async () => {
  const asked = { messages: [{ from: 'user', text: 'Is it polite?\nAnswer yes or no.' }] };
  const call = (text: string) => ({ index: 0, method: 'score', input: { text }, error: { text: 'no' } });
  const validation = { id: 'a', index: 0, name: 'polite', exitCode: 1 };
  const shown = async (text: string) => {
    using kept = keptLedger();
    await kept.add('batch_one', {
      a: [{ verdict: 'failed', validations: [{ ...validation, calls: [call(text)] }] }],
    });
    return plainText(partsOf(openTrial(kept.ledger, 'a#0'), ['verify']));
  };
  expect(await shown(JSON.stringify(asked, null, 2))).toMatch(
    /text: \|-\n.*Is it polite\?\n.*Answer yes or no\.\n/,
  );
  expect(await shown('{"messages": [{"from": "us')).toContain('{"messages": [{"from": "us\n');
});

test('a timeline has a row for the time of the judges', async () => {
  using kept = keptLedger();
  const asked = (role: 'agent' | 'judge', startedAt: number) => ({
    model: 'model-1',
    wire: 'chat',
    path: '/',
    streamed: false,
    failedTries: [],
    usage: {},
    requestBytes: 0,
    responseBytes: 0,
    role,
    startedAt: at + startedAt,
    finishedAt: at + startedAt + 1000,
  });
  const shown = await story(kept, {
    verdict: 'failed',
    phases: [{ name: 'validate', startedAt: at, durationMs: 5000 }],
    models: { ...account, exchanges: [asked('agent', 0), asked('judge', 1000), asked('judge', 3000)] },
  });
  expect(shown).toMatch(/\+1\.0 s {2}judge {2}2 requests to model-1 +3\.0 s/);
});

test('what is left out of a long output does not say what failed', async () => {
  using kept = keptLedger();
  const noise = (name: string) => Array.from({ length: 30 }, (_, index) => `${name} ${index}`);
  const output = [
    'Error: a warning at the start',
    ...noise('before'),
    'FAIL: sums negative numbers',
    '  expected -3, got 3',
    ...noise('between'),
    'not ok 7 - rounds to even',
    ...noise('after'),
    '2 failed',
  ].join('\n');
  const shown = await story(kept, {
    verdict: 'failed',
    verifySteps: [{ command: 'npm test', exitCode: 1, output, outputTruncated: false }],
    validations: [
      {
        id: 'a',
        index: 0,
        name: 'hidden tests',
        kind: 'tests',
        exitCode: 1,
        logs: [{ index: 0, value: { text: output } }],
      },
    ],
  });
  const line =
    / {4}│ … \d+ lines left out …\n {4}│ (?:FAIL: sums negative numbers|not ok 7 - rounds to even)\n/g;
  expect(shown.match(line)).toHaveLength(4);
});

test('a story tells the rest in the order in which somebody asks for it, in three screens at most', async () => {
  using kept = keptLedger();
  const printed = await story(kept, failed);
  const titles = printed.split('\n').filter((line) => /^[a-z]/.test(line));
  expect(titles.map((line) => line.split('  ')[0])).toEqual([
    'why',
    'verify',
    'validations',
    'judgments',
    'tried',
    'prompt',
    'timeline',
    'more',
  ]);
  expect(printed).toContain('✗ style  0.4 < 0.7  judge-1\n    │ too clever');
  expect(printed).toContain('variant  v: codex 1.2.3, model model-1');
  expect(printed).toMatch(/\+100 ms {2}message {2}I will look\n +\+300 ms {2}command {2}ls -la +✗/);
  expect(printed).toMatch(/offsite show a\/v#0 --verify \| --diff/);
  expect(printed.split('\n').length).toBeLessThan(72);
});

test('a diff is shown as git shows it; what was not kept is told', async () => {
  using kept = keptLedger();
  const put = async (text: string) => (await kept.ledger.blobs.put(Buffer.from(text))).sha256;
  const file = (content?: string, more: object = {}) => {
    return { type: 'file' as const, mode: 0o644, byteSize: 5, ...(content && { content }), ...more };
  };
  const changes: FileChange[] = [
    {
      path: 'a.txt',
      kind: 'modified',
      before: file(await put('1\n2\n3\n')),
      after: file(await put('1\n--two\n3\n')),
    },
    { path: 'new.sh', kind: 'added', after: file(await put('echo\n')) },
    { path: 'old', kind: 'deleted', before: file(await put('gone\r\n')) },
    {
      path: 'run.sh',
      kind: 'modified',
      before: file(await put('x')),
      after: file(await put('x'), { mode: 0o755 }),
    },
    {
      path: 'logo.png',
      kind: 'modified',
      before: file(),
      after: file(undefined, { byteSize: 2048 }),
      omitted: 'binary',
    },
    { path: 'link', kind: 'added', after: { type: 'symlink', mode: 0o777, linkTarget: '/etc/passwd' } },
    { path: '.git/index', kind: 'modified', omitted: 'binary' },
    { path: 'src/__pycache__/a.pyc', kind: 'added', omitted: 'binary' },
  ];
  const printed = await story(kept, { ...failed, filesChanged: changes.map(({ path }) => path), changes });
  expect(printed).toContain(
    'changed files  8\n  M a.txt  +1 −1\n    │ @@ -1,3 +1,3 @@\n    │  1\n    │ -2\n    │ +--two\n    │  3',
  );
  expect(printed).toContain('A new.sh  +1\n    │ @@ -0,0 +1,1 @@\n    │ +echo');
  expect(printed).toContain('D old  −1\n    │ @@ -1,1 +0,0 @@\n    │ -gone\\u{d}');
  expect(printed).toContain('M run.sh  mode 0644 → 0755');
  expect(printed).toContain('M logo.png  binary file, 5 B → 2.0 KiB');
  expect(printed).toContain('A link  +1\n    │ @@ -0,0 +1,1 @@\n    │ +symlink to /etc/passwd');
  expect(printed).toContain('and 1 below .git, 1 in caches of tools');
  expect(plainText(partsOf(openTrial(kept.ledger, 'a' + '#0'), ['diff']))).toContain(
    'M .git/index  binary file',
  );
});

test('a large diff is cut in a story, and whole on its own', async () => {
  using kept = keptLedger();
  const content = (await kept.ledger.blobs.put(Buffer.from(longOutput))).sha256;
  const changes: FileChange[] = [
    { path: 'long', kind: 'added', after: { type: 'file', mode: 0o644, byteSize: 4000, content } },
  ];
  const printed = await story(kept, { ...failed, changes });
  expect(printed).toContain('│ +line 38\n    … 462 more lines of this diff');
  const whole = plainText(partsOf(openTrial(kept.ledger, 'a#0'), ['diff']));
  expect(whole).toContain('│ +line 499');
});

test('the parts of a trial are shown in full', async () => {
  using kept = keptLedger();
  await kept.add('batch_one', { a: [failed] });
  const shown = openTrial(kept.ledger, 'a#0');
  const part = (name: (typeof parts)[number]) => plainText(partsOf(shown, [name]));
  expect(part('verify')).toMatch(/│ line 250\n/);
  expect(part('verify')).toMatch(/✓ npm ci.*\n {4}│ fine\n/);
  expect(part('verify')).toMatch(/logs\n {4}│ a log/);
  expect(part('transcript')).toMatch(/\+100 ms message\n {4}│ I will look\n {4}│ at it/);
  expect(part('transcript')).toMatch(/command ls -la {2}exit 2\n {4}│ no such file/);
  expect(part('model')).toMatch(/no model was asked/);
});

test('a void trial shows its cause with the output, and attempts that do not count', async () => {
  using kept = keptLedger();
  await kept.add('batch_one', { a: [undefined] });
  const [trial] = kept.ledger.queue.ofBatch(1);
  const cause = { kind: 'infrastructure' as const, phase: 'prepare' as const, message: 'it was down' };
  const { trials } = kept.ledger;
  await trials.abandonAttempt(trials.beginAttempt(trial?.key ?? 0), 'void', cause, { ...passed, version: 1 });
  const result = { ...passed, version: 1, verdict: 'void', cause: { ...cause, output: 'disk\nfull' } };
  const report = { caseName: 'a', ordinal: 0, taskIndex: 0, events: [], outcome: {} };
  await trials.finish(trials.beginAttempt(trial?.key ?? 0), { verdict: 'void', cause, result, report });
  const shown = openTrial(kept.ledger, 'a#0');
  const printed = plainText(storyOf(shown));
  expect(printed).toMatch(
    /^○ a · v #0 {2}void.*\n\nwhy\n {2}infrastructure, in prepare: it was down\n {2}│ disk\n {2}│ full/,
  );
  expect(printed).toMatch(
    /attempts {2}2\n {2}1 {2}void after 2\.0 s: infrastructure, in prepare: it was down\n {2}2 {2}void/,
  );
  expect(trialDocument(shown, [], kept.ledger)).toMatchObject({
    attempts: [{ number: 1, ending: 'void', cause, record: { verdict: 'passed' } }, { number: 2 }],
  });
});

test('nothing that a trial brings steers a terminal or a CI system, and a line of megabytes is cut', async () => {
  using kept = keptLedger();
  const hostile = `${hostileText}\n::error::forged\n--- a\n+++ b\n##[group]x`;
  const huge = `${hostile}\n${'x'.repeat(2 * 1024 ** 2)}\n${hostile}`;
  const put = async (text: string) => (await kept.ledger.blobs.put(Buffer.from(text))).sha256;
  const content = await put(huge);
  const after = { type: 'file' as const, mode: 0o644, byteSize: 1, content };
  const times = { startedAt: at, finishedAt: at };
  const connection = { ...times, host: hostile, port: 1, sentBytes: 0, receivedBytes: 0, failure: hostile };
  const result: Partial<TrialRecord> = {
    verdict: 'failed',
    cause: { kind: 'agent', phase: 'harness', message: hostile, output: huge },
    verifySteps: [{ command: hostile, exitCode: 1, output: huge, outputTruncated: true }],
    validations: [
      {
        id: 'a',
        index: 0,
        name: hostile,
        exitCode: 1,
        message: hostile,
        error: { text: hostile },
        calls: [
          {
            index: 0,
            method: hostile,
            input: { text: hostile },
            output: { text: hostile },
            error: { text: hostile },
          },
        ],
        logs: [{ index: 0, value: { text: huge } }],
      },
    ],
    judgments: [
      { name: hostile, score: 0, threshold: 1, reason: hostile, choice: hostile, model: hostile },
      { name: `${hostile}: ${hostile}`, score: 0 },
    ],
    steps: [{ ...times, name: hostile, verdict: 'passed', rewards: { [hostileName]: 0 } }, { name: hostile }],
    testsConnections: [connection],
    subject: {
      caseName: hostile,
      ordinal: 0,
      model: hostile,
      harness: hostile,
      profile: hostile,
      image: hostile,
      network: hostile,
      prompt: huge,
      hosts: [hostile],
      testsHosts: [hostile],
    },
    harnessVersion: hostile,
    sandboxLacks: [hostile],
    disagreements: [hostile],
    trajectory: [{ _tag: 'command', command: hostile, exitCode: 1, output: hostile }],
    events: [
      { kind: 'message', at, text: huge },
      { kind: 'tool', at, name: hostile, input: { [hostileName]: hostile }, output: hostile },
    ],
    environment: [{ phase: 'install', description: hostile, log: content }],
    harnessOutput: hostile,
    changes: [
      { path: hostile, kind: 'modified', before: { ...after, content: await put('old') }, after },
      { path: 'l', kind: 'added', after: { type: 'symlink', mode: 0, linkTarget: hostile } },
    ],
    artifacts: [{ path: hostile, byteSize: 1, sha256: content }],
    models: {
      connections: [connection],
      exchanges: [
        {
          ...times,
          role: 'agent',
          model: hostile,
          wire: hostile,
          path: hostile,
          streamed: true,
          failedTries: [{ at, reason: hostile }],
          failure: hostile,
          usage: {},
          requestBytes: 0,
          responseBytes: 0,
        },
      ],
      usage: [{ role: 'agent', model: hostile, requests: 1, usage: {} }],
      modelMs: 0,
      failure: hostile,
      agent: { acted: true },
    },
  };
  await kept.add('batch_one', { [hostileName]: [result] });
  const shown = openTrial(kept.ledger, `run_batch_one_0#0`);
  const view = readBatch(kept.ledger, lastBatch(kept.ledger.records));
  const printed = {
    story: plainText(storyOf(shown)),
    batch: plainText(batchView(view, { short: 'one', isLast: true, width: 80 })),
    ...Object.fromEntries(parts.map((part) => [part, plainText(partsOf(shown, [part]))])),
  };
  for (const [what, text] of Object.entries(printed)) expect(harmIn(text), what).toEqual([]);
  expect(printed.story).toContain('tests at ');
  expect(printed.story.length).toBeLessThan(60_000);
  let json = '';
  new Output({ write: (text) => (json += text) }).json(trialDocument(shown, [], kept.ledger));
  expect(harmIn(json)).toEqual([]);
  expect(JSON.parse(json)).toMatchObject({
    record: { harnessVersion: hostile },
    run: { caseId: hostileName },
  });
});

test('a step has a mark only for what it had to reach, and the hosts of agent and tests are shown', async () => {
  using kept = keptLedger();
  const step = { startedAt: at, finishedAt: at + 1_000 };
  const connection = {
    host: 'a.example',
    port: 443,
    startedAt: at,
    finishedAt: at,
    sentBytes: 10,
    receivedBytes: 20,
  };
  const subject = { ...failed.subject, hosts: ['a.example', '*.b.example:443'], testsHosts: ['c.example'] };
  const withTimeLeft = { ...subject, tellDeadline: true as const };
  await kept.add('batch_steps', {
    one: [
      {
        verdict: 'failed',
        subject: withTimeLeft as NonNullable<TrialRecord['subject']>,
        models: {
          ...account,
          connections: [connection, { ...connection, failure: 'refused' }],
        },
        testsConnections: [{ ...connection, host: 'c.example' }],
        steps: [
          { ...step, name: 'write', verdict: 'passed', rewards: { reward: 1 } },
          { ...step, name: 'extend', verdict: 'passed', rewards: { reward: 0 } },
          { ...step, name: 'polish', verdict: 'failed', rewards: { quality: 0.2, speed: 3 } },
          { name: 'last' },
        ],
        judgments: [
          { name: 'reward', score: 0.5, threshold: 1 },
          { name: 'write: reward', score: 1, threshold: 1 },
          { name: 'extend: reward', score: 0 },
          { name: 'polish: quality', score: 0.2, threshold: 0.5 },
          { name: 'polish: speed', score: 3 },
        ],
      },
    ],
  });
  const shown = openTrial(kept.ledger, 'one#0');
  const story = plainText(storyOf(shown));
  expect(story).toMatch(/✓ write +reward 1, of at least 1/);
  expect(story).toMatch(/· extend +reward 0, no threshold/);
  expect(story).toMatch(/✗ polish +quality 0\.2, of at least 0\.5; speed 3, no threshold/);
  expect(story).toMatch(/· last +not run/);
  expect(story).toContain('✓ reached its thresholds  ✗ did not  ○ void  · nothing to reach, or not run');
  expect(story).toContain('hosts    a.example, *.b.example:443: 2 connections, 1 failed');
  expect(story).toContain('tests at c.example: 1 connection');
  expect(story).toContain('given    how much time and budget it had left');
  const model = plainText(partsOf(shown, ['model']));
  expect(model).toMatch(/hosts of the tests +1 connection\n.* c\.example:443 +10 B sent, 20 B received/);
});
