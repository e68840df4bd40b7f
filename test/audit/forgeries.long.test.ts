import { generateKeyPairSync } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runners } from '../../runners/index.ts';
import { auditBatch } from '../../src/audit/audit-batch.ts';
import { systemClock } from '../../src/base/clock.ts';
import { findBatch } from '../../src/ledger/find.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import type { AuditedLevel, AuditLevel } from '../../src/record/audit.ts';
import { loadConfig } from '../../src/suite/load-config.ts';
import { offsite } from '../cli/offsite.ts';
import { openPlace, type Place } from '../cli/place.ts';
import { entriesOf, statementIn, writeBundle } from '../evidence/bundle-file.ts';
import { forgedBatches } from './forged-batches.ts';
import { forgedNumbers } from './forged-numbers.ts';
import { forgedResults } from './forged-results.ts';
import { forgedWork } from './forged-work.ts';
import { Forger } from './forger.ts';
import { first } from './forgery.ts';
import { honestBatch } from './honest.ts';

let place: Place;
beforeAll(async () => {
  place = await honestBatch();
});
afterAll(() => place?.[Symbol.dispose]());

const config = loadConfig({ named: undefined, suiteFolder: undefined, env: {} });

async function auditIn(folder: string) {
  using ledger = new Ledger(folder, systemClock);
  return await auditBatch(
    findBatch(ledger.records, 'last'),
    {
      ledger,
      config,
      harnesses: runners,
      now: 0,
      problems: [],
      isLeftOut: () => false,
      concurrency: 4,
      observe: () => undefined,
    },
    AbortSignal.timeout(60_000),
  );
}

/** The first place at each level that is contradicted, with the trial; without a trial about the batch. */
async function contradictionsIn(folder: string): Promise<{ level: AuditLevel; at: string }[]> {
  const { whole, trials } = await auditIn(folder);
  const ofBatch = whole.level('consistent').contradictions.map(({ path }) => `batch ${path}`);
  return [
    ...ofBatch.map((at) => ({ level: 'consistent' as const, at })),
    ...trials.flatMap(({ trial, audit }) =>
      audit.levels.flatMap(({ level, contradictions }) =>
        contradictions.map(({ path }) => ({ level, at: `${trial.caseId}#${trial.ordinal} ${path}` })),
      ),
    ),
  ];
}

const forgeries = [...forgedResults, ...forgedNumbers, ...forgedWork, ...forgedBatches];

test('nothing is contradicted in what is honest', async () => {
  expect(await contradictionsIn(place.dataFolder)).toEqual([]);
});

test('nothing is contradicted in honest trials without a verdict, or whose harness was stopped', async () => {
  using other = openPlace();
  const suite = other.suite({
    cases: [
      { id: 'broken', prepare: 'exit 3', verify: 'true', variables: { act: 'true' } },
      { id: 'unchecked', verify: 'kill -9 $$', variables: { act: 'true' } },
      { id: 'early', verify: '# One\n\ntrue\nif true; then exit 0; fi\nfalse', variables: { act: 'true' } },
      {
        id: 'lines',
        variables: { act: 'true' },
        verify:
          "cat > a <<'END'\n# not\n\nfalse\nEND\ntest 4 = \\\n  4\nf() {\n  test -s a\n}\n\nf; f # end\n\n",
      },
      { id: 'late', verify: 'true', variables: { act: 'sleep 60' } },
    ],
    sandbox: { timeouts: { harness: '3s' } },
  });
  const ran = await offsite(other, ['run', suite, '--json']);
  expect(JSON.parse(ran.stdout), ran.stderr).toMatchObject({ passed: 3 });
  expect(await contradictionsIn(other.dataFolder)).toEqual([]);
});

test.each(forgeries)(
  '%s is contradicted at the level %s, at %s',
  { timeout: 60_000 },
  async (_, level, at, forge) => {
    const folder = join(place.folder, 'forged');
    {
      using forger = new Forger(place.dataFolder, folder);
      forge(forger);
    }
    const found = await contradictionsIn(folder);
    expect(
      found.filter((one) => one.level === level && one.at.startsWith(at)),
      JSON.stringify(found),
    ).not.toEqual([]);
  },
);

test('what is left out of a record is said not to be checked', async () => {
  const folder = join(place.folder, 'left-out');
  {
    using forger = new Forger(place.dataFolder, folder);
    forger.editAll('wrong#0', (record) => Object.assign(record, { verdict: 'passed', fromService: true }));
    forger.editAll('count#0', (record) => {
      for (const member of ['models', 'fingerprint', 'sandboxId', 'derivedTrajectory'] as const)
        delete record[member];
    });
  }
  const { whole, trials } = await auditIn(folder);
  const level = (name: string) =>
    trials
      .find(({ trial }) => `${trial.caseId}#${trial.ordinal}` === name)
      ?.audit.levels.find((one) => one.level === 'consistent');
  expect(level('wrong#0')?.state).toBe('not reached');
  expect(level('count#0')?.unchecked).toEqual(
    expect.arrayContaining([expect.stringMatching(/no fingerprint/), expect.stringMatching(/no exchange/)]),
  );
  expect(whole.level('consistent').unchecked).toContainEqual(expect.stringMatching(/1 trials are copies/));
});

/**
 * What agrees with itself. Offsite's owner made everything anew that follows from the edit, so that only
 * doing it again shows it.
 */
const thorough: [
  trial: string,
  level: AuditLevel,
  what: string,
  forge: (forger: Forger) => void,
  at?: string,
][] = [
  [
    'count#0',
    'replayed',
    'another last message, which a validator may read',
    (f) =>
      f.editAll('count#0', (record) => {
        record.finalMessage = 'It is nine.';
      }),
    'finalMessage',
  ],
  [
    'count#0',
    'replayed',
    'another exit code of the harness',
    (f) =>
      f.editAll('count#0', (record) => Object.assign(record, { harness: { ended: 'exited', exitCode: 3 } })),
    'harness.exitCode',
  ],
  [
    'wrong#0',
    'replayed',
    'a command that was replaced in a trajectory that is said to be cut',
    (f) =>
      f.editAll('wrong#0', (record) => {
        record.commandsCut = true;
        Object.assign(first(record.trajectory), { command: 'node check.js' });
      }),
    'trajectory[0].command',
  ],
  [
    'wrong#0',
    'regraded',
    'a failure made a pass, with its checks',
    (f) =>
      f.editAll('wrong#0', (record) => {
        record.verdict = 'passed';
        for (const step of record.verifySteps ?? []) step.exitCode = 0;
      }),
  ],
  [
    'reply#0',
    'regraded',
    'a validation left out',
    (f) =>
      f.editAll('reply#0', (record) => {
        record.validations?.shift();
        first(record.trajectory).output = 'written';
      }),
  ],
  [
    'reply#1',
    'regraded',
    'another score of a judge, wherever it stands but in its answer',
    (f) =>
      f.editAll('reply#1', ({ judgments = [], validations = [] }) => {
        for (const one of [...judgments, ...validations.map(({ judgment }) => judgment)])
          Object.assign(one ?? {}, { score: 0.2, threshold: 0.1 });
      }),
    'judgment it is kind',
  ],
  [
    'count#1',
    'replayed',
    'another command, in all requests and answers too',
    (f) => f.rewrite('count#1', 'wc -w', 'wc -c'),
  ],
  [
    'wrong#1',
    'replayed',
    'the work of a better trial, with its checks',
    (f) => {
      const better = f.record('count#1');
      f.editAll('wrong#1', (record) => {
        record.verdict = 'passed';
        for (const step of record.verifySteps ?? []) step.exitCode = 0;
        Object.assign(record, { left: better.left, changes: better.changes });
      });
      f.keepArchiveOf('wrong#1');
    },
  ],
];

test('what agrees with itself is contradicted when the work is graded and the harness runs again', async () => {
  const folder = join(place.folder, 'thorough');
  {
    using forger = new Forger(place.dataFolder, folder);
    // The last two edit what the others read.
    for (const [, , , forge] of thorough.toReversed()) forge(forger);
  }
  expect(await contradictionsIn(folder)).toEqual([]);
  const { stdout, stderr, exitCode } = await offsite(place, ['audit', '--level', 'replayed', '--json'], {
    dataFolder: folder,
  });
  expect(exitCode, stderr).toBe(1);
  const audited: { trials: { caseId: string; ordinal: number; levels: AuditedLevel[] }[] } =
    JSON.parse(stdout);
  const levelOf = (name: string, level: AuditLevel) =>
    audited.trials
      .find(({ caseId, ordinal }) => `${caseId}#${ordinal}` === name)
      ?.levels.find((one) => one.level === level);
  for (const [name, level, what, , at = ''] of thorough) {
    const found = levelOf(name, level);
    expect(found?.state, `${what}: ${JSON.stringify(found)}`).toBe('contradicted');
    expect(
      found?.contradictions.some(({ path }) => path.startsWith(at)),
      what,
    ).toBe(true);
  }
  // What a command prints may depend on the machine, so it is no contradiction, but it is said.
  expect(levelOf('reply#0', 'replayed')?.unchecked).toContainEqual(
    expect.stringMatching(/1 command printed/),
  );
  expect(levelOf('wrong#0', 'consistent')?.unchecked).toContainEqual(
    expect.stringMatching(/more than a record/),
  );
});

test('a signed file is audited in another data folder; another key or another content is contradicted', async () => {
  const keyFile = (name: string) => {
    const { privateKey, publicKey } = generateKeyPairSync('ed25519');
    writeFileSync(join(place.folder, `${name}.pub.pem`), publicKey.export({ type: 'spki', format: 'pem' }));
    writeFileSync(join(place.folder, `${name}.pem`), privateKey.export({ type: 'pkcs8', format: 'pem' }));
    return join(place.folder, `${name}.pem`);
  };
  const [own, other] = [keyFile('owner'), keyFile('other')];
  const elsewhere = join(place.folder, 'elsewhere');
  const exported = async (name: string, key: string, dataFolder: string) => {
    const file = join(place.folder, name);
    const written = await offsite(place, ['export', '--evidence', file, '--sign-with', key], { dataFolder });
    expect(written.exitCode, written.stderr).toBe(0);
    return file;
  };
  const audited = async (file: string, level: AuditLevel) => {
    const args = ['audit', file, '--signed-by', join(place.folder, 'owner.pub.pem'), '--level', level];
    const { stdout, stderr, exitCode } = await offsite(place, [...args, '--json'], { dataFolder: elsewhere });
    if (stdout === '') throw new Error(stderr);
    return { exitCode, ...JSON.parse(stdout) };
  };
  const honest = await exported('honest.evidence', own, place.dataFolder);
  const all = await audited(honest, 'replayed');
  expect(all.trials.map(({ standing }: { standing: string }) => standing)).toEqual(Array(6).fill('replayed'));
  expect([all.contradicted, all.exitCode, all.whole.state]).toEqual([0, 0, 'held']);
  expect(all.signature).toContain('signed by SHA256:');

  const resigned = await audited(await exported('resigned.evidence', other, place.dataFolder), 'consistent');
  expect([resigned.exitCode, resigned.whole.contradictions[0].found]).toEqual([
    1,
    expect.stringMatching(/^SHA256:\S+; the file holds what its statement lists$/),
  ]);

  const folder = join(place.folder, 'dropped');
  {
    using forger = new Forger(place.dataFolder, folder);
    forger.drop('wrong#1');
  }
  const dropped = await audited(await exported('dropped.evidence', own, folder), 'consistent');
  expect([dropped.exitCode, dropped.whole.state]).toEqual([1, 'contradicted']);

  const entries = await entriesOf(honest);
  const record = statementIn(entries).predicate.batch.runs[0]?.trials[0]?.result?.record;
  const edited = entries.map((entry) =>
    entry.name === `blobs/${record}` ? { ...entry, content: Buffer.alloc(entry.content.length) } : entry,
  );
  writeBundle(join(place.folder, 'edited.evidence'), edited);
  const { whole, trials } = await audited(join(place.folder, 'edited.evidence'), 'intact');
  const found = ({ contradictions }: AuditedLevel) => contradictions.map((one) => one.found);
  expect(found(whole)).toEqual([`blobs/${record} was changed: its content has another hash`]);
  expect(trials.filter(({ standing }: { standing: string }) => standing === 'contradicted')).toHaveLength(1);

  const cut = readFileSync(honest).subarray(0, -2_000);
  writeFileSync(join(place.folder, 'cut.evidence'), cut);
  await expect(audited(join(place.folder, 'cut.evidence'), 'intact')).rejects.toThrow('is not evidence');
});
