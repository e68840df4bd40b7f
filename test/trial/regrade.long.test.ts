import { mkdtempSync, readdirSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runners } from '../../runners/index.ts';
import { systemClock } from '../../src/base/clock.ts';
import { connectEngine } from '../../src/engine/connect.ts';
import type { Engine } from '../../src/engine/engine.ts';
import { openGateway } from '../../src/gateway/open-gateway.ts';
import { scriptedUpstream } from '../../src/gateway/scripted/scripted-upstream.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import type { KeptWorkspace } from '../../src/ledger/workspaces.ts';
import type { TrialRecord } from '../../src/record/trial-record.ts';
import { Redactor } from '../../src/redaction/redactor.ts';
import { noEnvironment } from '../../src/suite/environment.ts';
import type { PlannedService } from '../../src/suite/services.ts';
import {
  obstacleOf,
  placeObstacle,
  regradeTrial,
  servicesObstacle,
} from '../../src/trial/grade/regrade-trial.ts';
import { Sandboxes } from '../../src/trial/prepare/sandboxes.ts';
import { runTrial } from '../../src/trial/run-trial.ts';
import type { TrialSpec } from '../../src/trial/spec.ts';
import { scriptTests } from './script-tests.ts';
import { specOf, validator } from './trial-bench.ts';

const key = 'sk-a-key-of-this-machine-0123456789';
const never = new AbortController().signal;
const folder = mkdtempSync(join(tmpdir(), 'offsite-regrade-'));
let engine: Engine;
let ledger: Ledger;
let sandboxes: Sandboxes;
const gateway = openGateway({
  models: {},
  env: {},
  clock: systemClock,
  scripted: (file) => scriptedUpstream(file, systemClock),
});

beforeAll(async () => {
  engine = await connectEngine({ instance: `test-regrade-${process.pid}` });
  ledger = new Ledger(folder, systemClock, { redactor: new Redactor([key]) });
  sandboxes = new Sandboxes(engine, undefined, { runners });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await sandboxes[Symbol.asyncDispose]();
  const left = (await engine.keptSnapshots()).filter(({ description }) =>
    description.startsWith('what case-'),
  );
  await engine.removeSnapshots(left);
  await engine[Symbol.asyncDispose]();
  ledger[Symbol.dispose]();
  rmSync(folder, { recursive: true, force: true });
});

function parts() {
  const budgets = { trial: {}, batch: undefined };
  return { sandboxes, runners, clock: systemClock, gateway, budgets, blobs: ledger.blobs };
}

/** Runs a trial that keeps what it leaves. */
function trial(run: string, change: Partial<TrialSpec>, sandbox: Partial<TrialSpec['sandbox']> = {}) {
  const keep = { store: ledger.workspaces, budget: 1024 ** 3 };
  const spec = specOf(run, { caseName: `case-${process.pid}`, ...change }, sandbox);
  return runTrial(spec, { ...parts(), keep }, never, () => undefined);
}

function keptOf({ left }: TrialRecord): KeptWorkspace {
  if (!left || left.kind === 'not-kept') throw new Error(`not kept: ${left?.why}`);
  const name = left.kind === 'archive' ? left.sha256 : left.kind === 'image' ? left.imageId : undefined;
  const byteSize = left.kind === 'archive' ? left.byteSize : 0;
  return { trial: 1, kind: left.kind, name, byteSize, storedSize: 0, keptAt: 0, removedAt: undefined };
}

/** Grades what a trial left. Its harness would break the grading if it ran. */
function regrade(result: TrialRecord, change: Partial<TrialSpec>, kept = keptOf(result)) {
  const spec = specOf('rm -rf /workspace/*', change);
  const left = {
    spec,
    record: result,
    recordBlob: '0'.repeat(64),
    kept,
    suite: undefined,
    notes: [],
  };
  return regradeTrial(left, { ...parts(), workspaces: ledger.workspaces }, never, () => undefined);
}

const listing =
  'find . -mindepth 1 -printf "%p %y %m %U:%G %n %s %TY%Tm%Td%TH%TM %l\\n" | LC_ALL=C sort | sha256sum | tee /proc/self/fd/2';

describe('what an agent left', () => {
  test('is graded again as it was: names, owners, modes, times, links, and what it deleted', async () => {
    const prepare = 'echo old > gone; mkdir kept; echo same > kept/file';
    const run = `rm gone; mkdir -m 700 d; echo hi > d/$'line\\n\\e[31m'; ln d/* hard; ln -s /etc/passwd link
      ln -s nowhere dangling; mkfifo pipe; chown 7:8 d; chmod 4755 hard; touch -d 2001-02-03 hard
      : > -- '--flag'; : > $'\\xff\\xfe'; truncate -s 20M sparse`;
    const first = await trial(run, { prepare, verify: `${listing}; test ! -e gone` });
    expect(first.cause).toBeUndefined();
    expect(first.left).toMatchObject({ kind: 'archive' });
    const again = await regrade(first, { prepare, verify: `${listing}; test ! -e gone` });
    expect(again.verdict).toBe('passed');
    expect(again.verifySteps?.[0]?.output).toBe(first.verifySteps?.[0]?.output);
    expect(again.filesChanged).toEqual(first.filesChanged);
    expect(again.imageId).toBe(first.imageId);
    expect(again.regrade?.notes).toEqual([]);
    // It has no part of the agent's own story.
    expect([again.trajectory, again.harness, again.left]).toEqual([undefined, undefined, undefined]);
    const other = await regrade(first, { prepare, verify: 'test -e gone' });
    expect(other.verdict).toBe('failed');
    expect(other.cause).toBeUndefined();
  });

  test('is graded by a validator that reads what the agent did and said', async () => {
    const source = `import { validate } from 'offsite/validator';
      validate('what it did', async ({ read, trajectory, filesChanged }) =>
        [await read('out'), trajectory.length, filesChanged].join());`;
    const first = await trial('echo done > out', { verify: 'false' });
    const again = await regrade(first, { validator: validator(source) });
    expect([first.verdict, again.verdict]).toEqual(['failed', 'passed']);
    expect(again.validations?.[0]?.output?.text).toBe('done\n,1,out');
  });

  test('needs no disk if it changed nothing, and still shows changed protected files if it did', async () => {
    const shared = { prepare: 'echo mine > rules', protected: ['rules'] };
    const idle = await trial('true', { ...shared, verify: 'true' });
    expect(idle.left).toEqual({ kind: 'untouched' });
    expect((await regrade(idle, { ...shared, verify: 'grep -q mine rules' })).verdict).toBe('passed');
    const cheat = await trial('echo yours > rules', { ...shared, verify: 'true' });
    const again = await regrade(cheat, { ...shared, verify: 'true' });
    expect([cheat.verdict, again.verdict]).toEqual(['failed', 'failed']);
    expect(again.validations?.[0]?.message).toContain('files that the case protects were changed: "rules"');
  });

  test('without a workspace is graded without one', async () => {
    const first = await trial('cd /; rm -rf /workspace', { verify: 'test ! -e file' });
    const again = await regrade(first, { verify: 'test ! -e file' });
    expect([first.verdict, again.verdict]).toEqual(['passed', 'passed']);
    const linked = await trial('cd /; rm -rf /workspace; ln -s /etc /workspace', { verify: 'true' });
    const linkedAgain = await regrade(linked, { verify: 'true' });
    expect([linked.verdict, linkedAgain.verdict]).toEqual(['failed', 'failed']);
    expect(linkedAgain.cause?.message).toContain('no longer a folder');
  });

  test('is not kept with a key of this machine in it, however that is split', async () => {
    const filler = 'head -c 65530 /dev/zero > a';
    const result = await trial(`${filler}; printf '%s' '${key}' > b`, { verify: 'true' });
    expect(result.left).toEqual({ kind: 'not-kept', why: 'a key of this machine is in the workspace' });
    expect(result.verdict).toBe('passed');
    const encoded = await trial(`printf '%s' '${key}' | base64 -w0 > b`, { verify: 'true' });
    expect(encoded.left).toMatchObject({ kind: 'not-kept' });
  });

  test('is not kept if it claims to be larger than the bound', async () => {
    const result = await trial('truncate -s 4T huge', { verify: 'test -e huge' });
    expect(result.left).toEqual({ kind: 'not-kept', why: 'its workspace has more than 2 GiB' });
    expect(result.verdict).toBe('passed');
    const partial = readdirSync(ledger.workspaces.folder).filter((name) => name.startsWith('partial-'));
    expect(partial).toEqual([]);
  });

  test('is kept as what changed if its workspace is large and mostly as prepare made it', async () => {
    const prepare = 'head -c 60M /dev/zero > large; mkdir d; echo a > d/a; echo b > d/b';
    const first = await trial('rm d/a; echo c > d/b', { prepare, verify: 'false', protected: ['d/*'] });
    expect(first.left).toMatchObject({ kind: 'image' });
    const again = await regrade(first, { prepare, verify: `${listing}; test ! -e d/a; grep -q c d/b` });
    expect(again.verdict).toBe('passed');
    expect(again.filesChanged).toEqual(first.filesChanged);
    const guarded = await regrade(first, { prepare, verify: 'true', protected: ['d/*'] });
    expect(guarded.verdict).toBe('failed');
    expect(guarded.validations?.[0]?.message).toContain('"d/a", "d/b"');
  });

  test('can be many bytes in few on the disk, of which no more than there were come back', async () => {
    const first = await trial('head -c 200M /dev/zero > zeros', {
      verify: 'test $(stat -c %s zeros) = 209715200',
    });
    const kept = keptOf(first);
    expect(kept.byteSize).toBeGreaterThan(200 * 1024 ** 2);
    expect(ledger.blobs.folder).not.toBe(ledger.workspaces.folder);
    const file = join(ledger.workspaces.folder, kept.name?.slice(0, 2) ?? '', kept.name ?? '');
    expect(statSync(file).size).toBeLessThan(1024 ** 2);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const cut = await regrade(first, { verify: 'true' }, { ...kept, byteSize: 1024 ** 2 });
    expect(cut.verdict).toBe('void');
    expect(cut.cause).toMatchObject({ kind: 'infrastructure', phase: 'sandbox' });
    expect(cut.cause?.message).toContain('it is longer than it was');
  });

  test('is not graded from a damaged archive', async () => {
    const first = await trial('head -c 100000 /dev/urandom > noise', { verify: 'true' });
    const kept = keptOf(first);
    const file = join(ledger.workspaces.folder, kept.name?.slice(0, 2) ?? '', kept.name ?? '');
    truncateSync(file, 50_000);
    expect((await regrade(first, { verify: 'true' })).cause?.message).toContain('is damaged');
    writeFileSync(file, 'not compressed at all');
    expect((await regrade(first, { verify: 'true' })).cause?.message).toContain('is damaged');
    rmSync(file);
    expect(obstacleOf(kept, ledger.workspaces)).toBe('the archive of its workspace is missing');
  });
});

describe('a trial that is graded in the sandbox of its agent', () => {
  const installed = (program: string) =>
    scriptTests(`${program} && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt`);

  test('is graded again by other tests, with all that it left outside its workspace', async () => {
    const run =
      'printf "#!/bin/sh\\necho tool 2" > /usr/local/bin/tool; chmod +x /usr/local/bin/tool; echo x > w';
    const first = await trial(run, { tests: installed('tool | grep -qx "tool 1"') });
    expect(first.verdict).toBe('failed');
    expect(first.left).toMatchObject({ kind: 'image' });
    const again = await regrade(first, { tests: installed('tool | grep -qx "tool 2" && grep -q x w') });
    expect(again.cause).toBeUndefined();
    expect(again.verdict).toBe('passed');
    expect(again.validatedIn).toBe('same');
    expect(again.systemChanges?.unexpected.paths).toEqual(['/usr/local/bin/tool']);
    expect(again.filesChanged).toEqual(['w']);
    const same = await regrade(first, { tests: installed('tool | grep -qx "tool 1"') });
    expect(same.verdict).toBe('failed');
  });

  test('is kept as an archive if its tests get only its workspace, and is graded again by them', async () => {
    const brought = { kind: 'workspace' as const, testPatch: '', base: 'HEAD', restored: [] };
    const fresh = { environment: undefined, brought };
    const prepare = 'git init -q; echo a > w; git add w; git -c user.name=a -c user.email=a@b commit -qm a';
    const first = await trial('echo x > w', { prepare, tests: { ...installed('grep -q x w'), fresh } });
    expect(first).toMatchObject({ verdict: 'passed', left: { kind: 'archive' } });
    const again = await regrade(first, { prepare, tests: { ...installed('grep -q x w'), fresh } });
    expect(again).toMatchObject({ verdict: 'passed', validatedIn: 'fresh', filesChanged: ['w'] });
    const other = await regrade(first, { prepare, tests: { ...installed('grep -q a w'), fresh } });
    expect(other.verdict).toBe('failed');
  });

  test('still fails for a change of the system that its case does not allow, and not for one that it does', async () => {
    const place = (ignore: string[]) => ({
      in: 'same' as const,
      keep: [],
      ignore,
      unexpected: 'fail' as const,
    });
    const run = 'echo 1 > /etc/agents';
    const first = await trial(run, { verify: 'true', verifyPlace: place([]) });
    const again = await regrade(first, { verify: 'true', verifyPlace: place([]) });
    const allowed = await regrade(first, {
      verify: 'grep -q 1 /etc/agents',
      verifyPlace: place(['/etc/agents']),
    });
    expect([first.verdict, again.verdict, allowed.verdict]).toEqual(['failed', 'failed', 'passed']);
  });

  test('can be graded in a fresh sandbox now, and one that was graded there cannot be graded in its own', async () => {
    const own = await trial('echo x > w', { tests: installed('false') });
    const fresh = { verify: 'grep -q x w' };
    expect((await regrade(own, fresh)).verdict).toBe('passed');
    const elsewhere = await trial('echo x > w', fresh);
    expect(placeObstacle(specOf('', { tests: installed('true') }), keptOf(elsewhere))).toContain(
      'only the workspace',
    );
    expect(placeObstacle(specOf('', { tests: installed('true') }), keptOf(own))).toBeUndefined();
  });

  test.each([
    ['in a new file', `mkdir -p /opt/d; printf '%s' '${key}' > /opt/d/f`],
    ['in a file of its image', `printf '%s' '${key}' >> /etc/issue`],
    ['as base64, beside its workspace', `printf 'x%s' '${key}' | base64 -w0 > /srv/b`],
    ['in a name', `touch '/opt/${key}'`],
    ['in the target of a link', `ln -s '/nowhere/${key}' /opt/link`],
  ])('is not kept with a key of this machine %s', async (_, run) => {
    const result = await trial(run, { tests: installed('true') });
    expect(result.left).toEqual({ kind: 'not-kept', why: 'a key of this machine is in its sandbox' });
    expect(result.verdict).toBe('passed');
  });

  test('is not kept if more changed in it than is searched for keys', async () => {
    const run = 'mkdir /opt/d; cd /opt/d; seq 100001 | xargs touch';
    const result = await trial(run, { tests: installed('true') });
    const why = 'too much changed in its sandbox to search it for keys';
    expect(result.left).toEqual({ kind: 'not-kept', why });
    expect(result.verdict).toBe('passed');
  });

  test('is void if its image is gone', async () => {
    const first = await trial('echo x > w', { tests: installed('true') });
    const mine = (await engine.keptSnapshots()).filter(({ id }) => id === keptOf(first).name);
    expect(mine).toHaveLength(1);
    await engine.removeSnapshots(mine);
    const again = await regrade(first, { tests: installed('true') });
    expect(again).toMatchObject({ verdict: 'void', cause: { kind: 'infrastructure', phase: 'sandbox' } });
    expect(again.cause?.message).toContain('no longer has the image');
  });
});

describe('a trial with services', () => {
  /** Answers 200 once something was posted, and 404 before that. */
  const store = `
let said = false;
require('node:http').createServer(({ method }, response) => {
  said ||= method === 'POST';
  response.writeHead(said ? 200 : 404).end();
}).listen(80);`;
  const healthcheck = {
    command: 'curl -s -o /dev/null localhost',
    interval: 200,
    timeout: 5_000,
    startPeriod: 20_000,
    retries: 3,
  };
  const db: PlannedService = {
    name: 'db',
    aliases: [],
    env: {},
    dependsOn: [],
    memoryFolders: [],
    resources: {},
    healthcheck,
    image: { name: 'offsite/base', place: 'suite.yaml:9:5' },
    command: ['node', '-e', store],
    place: 'suite.yaml:8:5',
  };
  const environment = { ...noEnvironment, services: [db] };
  const run = 'curl -s -d x db; echo x > w; echo y > /opt/outside';
  const was = 'curl -s -o /dev/null -w "%{http_code}" db | grep 200';
  const isNew = 'curl -s -o /dev/null -w "%{http_code}" db | grep 404';

  test('is graded again with new services only if that is asked for, and says so', async () => {
    const first = await trial(run, { environment, verify: was });
    expect([first.verdict, first.left?.kind]).toEqual(['passed', 'archive']);
    const verify = `${isNew}\ngrep -q x w`;
    const spec = specOf('', { environment, verify });
    expect(servicesObstacle(spec, false)).toContain('--new-services');
    expect(servicesObstacle(spec, true)).toBeUndefined();
    const again = await regrade(first, { environment, verify });
    expect([again.verdict, again.cause]).toEqual(['passed', undefined]);
    expect(again.services).toMatchObject([{ name: 'db', image: 'offsite/base' }]);
    expect(again.regrade?.notes).toEqual([
      'its services were newly started, without what the agent did to them',
    ]);
  });

  test('is graded again in the sandbox of its agent, which new services reach and which reaches them', async () => {
    const verifyPlace = { in: 'same' as const, keep: [], ignore: [], unexpected: 'show' as const };
    const first = await trial(run, { environment, verify: was, verifyPlace });
    expect([first.verdict, first.left?.kind]).toEqual(['passed', 'image']);
    const verify = `${isNew}\ngrep -q y /opt/outside\ngetent hosts db`;
    const again = await regrade(first, { environment, verify, verifyPlace });
    expect([again.verdict, again.cause]).toEqual(['passed', undefined]);
    expect(again.verifiedIn).toBe('same');
  });

  test('needs none of their state if its tests run in a sandbox of their own, with services of their own', async () => {
    const tests = scriptTests(`${isNew} && grep -q x w && echo 1 > /logs/verifier/reward.txt`, {
      fresh: {
        environment: undefined,
        brought: { kind: 'artifacts', artifacts: [{ path: '/workspace', exclude: [] }], sealed: [] },
      },
    });
    const first = await trial(run, { environment, tests });
    expect([first.verdict, first.left?.kind], first.cause?.message).toEqual(['passed', 'image']);
    expect(servicesObstacle(specOf('', { environment, tests }), false)).toBeUndefined();
    const again = await regrade(first, { environment, tests });
    expect([again.verdict, again.cause, again.regrade?.notes]).toEqual(['passed', undefined, []]);
  });
});
