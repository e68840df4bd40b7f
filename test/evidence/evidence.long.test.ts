import { execFileSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { connectEngine } from '../../src/engine/connect.ts';
import { openEvidence } from '../../src/evidence/open-evidence.ts';
import { lastBatch, listTrials } from '../../src/ledger/find.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { readRecord } from '../../src/record/read-record.ts';
import { offsite } from '../cli/offsite.ts';
import { openPlace } from '../cli/place.ts';

const { signal } = new AbortController();
const keptHere: string[] = [];

afterAll(async () => {
  await using engine = await connectEngine({ instance: `test-evidence-${process.pid}` });
  const snapshots = await engine.keptSnapshots();
  await engine.removeSnapshots(snapshots.filter(({ id }) => keptHere.includes(id)));
});

test('a batch that ran opens in another folder with its records, and gets the same verdicts there', {
  timeout: 600_000,
}, async () => {
  using place = openPlace();
  place.write('same.sh', 'grep hi /tmp/b');
  const project = join(place.folder, 'project', 'repo');
  const git = (...args: string[]) =>
    execFileSync('git', ['-C', project, '-c', 'user.name=a', '-c', 'user.email=a@b', ...args]);
  execFileSync('git', ['init', '--quiet', project]);
  writeFileSync(join(project, 'base.txt'), 'base');
  git('add', '.');
  git('commit', '--quiet', '-m', 'first');
  const suite = place.suite({
    trials: 2,
    cases: [
      {
        id: 'good',
        prepare: 'echo base > base.txt',
        variables: { act: 'echo hi > a.txt' },
        verify: 'grep hi a.txt',
      },
      { id: 'bad', variables: { act: 'echo no > a.txt' }, verify: 'grep hi a.txt', artifacts: ['*.txt'] },
      { id: 'idle', variables: { act: ':' }, verify: 'true' },
      {
        id: 'commit',
        source: { git: 'repo' },
        variables: { act: 'cat base.txt > a.txt' },
        verify: 'grep base a.txt && git log -1',
      },
      // As `offsite case add` makes it.
      {
        id: 'added',
        source: { git: 'repo' },
        variables: { act: 'echo more >> base.txt' },
        tests: {
          in: 'fresh',
          brings: 'workspace',
          command: ['bash', '-c', 'grep -c more base.txt > /logs/verifier/reward.txt'],
          rewards: { json: '/logs/verifier/reward.json', text: '/logs/verifier/reward.txt' },
        },
      },
      // Its agent's own sandbox is graded, so that an image of it is kept.
      {
        id: 'same',
        variables: { act: 'echo hi > /tmp/b' },
        verify: { file: 'same.sh', in: 'same' },
      },
    ],
  });
  expect(await offsite(place, ['run', suite])).toMatchObject({ exitCode: 0 });
  const key = join(place.folder, 'key.pem');
  execFileSync('openssl', ['genpkey', '-algorithm', 'ed25519', '-out', key], { stdio: 'pipe' });
  const file = join(place.folder, 'evidence.tar.zst');
  const args = ['export', '--evidence', file, '--sign-with', key, '--include-image'];
  const exported = await offsite(place, args);
  expect(exported.stderr).toMatch(
    /the evidence of 12 trials of batch_[\w-]+, sha256 [0-9a-f]{64}; signed by SHA256:/,
  );
  expect(exported.exitCode).toBe(0);

  const folder = join(place.folder, 'opened');
  const { gone, signature, images, statement } = await openEvidence(file, folder, {
    signal,
    clock: systemClock,
  });
  expect({ gone: [...gone], signature }).toMatchObject({
    gone: [],
    signature: { of: 'key', holds: true },
  });
  const verdicts: Record<string, string> = {};
  {
    using ledger = new Ledger(place.dataFolder, systemClock);
    using other = new Ledger(folder, systemClock);
    const trials = listTrials(ledger.records, lastBatch(ledger.records).key);
    const opened = listTrials(other.records, lastBatch(other.records).key);
    expect(opened.map(({ result }) => result)).toEqual(trials.map(({ result }) => result));
    for (const { result = '', caseId, ordinal, verdict = '' } of opened) {
      expect(other.blobs.read(result)).toEqual(ledger.blobs.read(result));
      const { imageId, left } = readRecord(other.blobs.readJson(result));
      const named = [imageId, left?.kind === 'image' ? left.imageId : imageId];
      expect(images[0]?.imageIds).toEqual(expect.arrayContaining(named));
      if (left?.kind === 'image') keptHere.push(left.imageId);
      verdicts[`${caseId}#${ordinal}`] = verdict;
    }
  }
  const entries = execFileSync('tar', ['-xOf', images[0]?.file ?? '', 'manifest.json'], { encoding: 'utf8' });
  expect(JSON.parse(entries)).toHaveLength(images[0]?.imageIds.length ?? 0);
  expect(JSON.parse(entries).every(({ RepoTags }: { RepoTags: string[] | null }) => RepoTags === null)).toBe(
    true,
  );
  expect(statement.predicate.contents.map(({ kind }) => kind)).toContain('image');

  const again = await offsite(place, ['trial', 'regrade', '--planned'], { dataFolder: folder });
  expect(again.stdout + again.stderr).toContain('cannot be graded again');
  // Whoever audits has neither the repository nor what was fetched of it.
  rmSync(project, { recursive: true });
  rmSync(join(place.dataFolder, 'sources'), { recursive: true });
  const elsewhere = { dataFolder: join(place.folder, 'elsewhere') };
  const audit = await offsite(place, ['audit', file, '--level', 'regraded', '--json'], elsewhere);
  const audited: { trials: { caseId: string; ordinal: number; verdict: string; standing: string }[] } =
    JSON.parse(audit.stdout);
  const now = audited.trials.map(({ caseId, ordinal, verdict }) => [`${caseId}#${ordinal}`, verdict]);
  expect(Object.fromEntries(now)).toEqual(verdicts);
  expect(new Set(audited.trials.map(({ standing }) => standing)), audit.stdout).toEqual(
    new Set(['regraded']),
  );
  const resumed = await offsite(place, ['resume'], { dataFolder: folder });
  expect(resumed.stdout + resumed.stderr).toContain('nothing to resume');
});
