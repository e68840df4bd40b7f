import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from '@commander-js/extra-typings';
import { XMLValidator } from 'fast-xml-parser';
import { describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { commands } from '../../src/cli/command-list.ts';
import { type Ended, offsite, start } from '../cli/offsite.ts';
import { openPlace } from '../cli/place.ts';
import { zipOf } from '../export/zip-file.ts';
import { makeRepository } from '../suite/git/repository.ts';
import { hostileTasks, modelAt, name, say } from './hostile-place.ts';
import {
  answered,
  asked,
  at,
  badEngine,
  bare,
  config,
  configured,
  flaky,
  fleetCommands,
  hostileStage,
  inTurn,
  kind,
  model,
  onFleet,
  place,
  plain,
  ran,
  refusing,
  suite,
  withBadEngine,
} from './hostile-stage.ts';
import { attacks, harmIn, hostileName, hostileText } from './hostile-text.ts';

/** What GitHub Actions is told on purpose. */
const annotation = /^::(error|warning) title=/;

hostileStage();

/** A trial of the run, as commands name it. */
const trialOf = (index: number) => `${JSON.parse(ran.stdout).runs[index].id}#0`;
const atKind = () => modelAt(place, kind);
const batchOfRun = () => JSON.parse(ran.stdout).batchId as string;
const [stop, lineStop, osc52] = [name(attacks.stop), name(attacks.lineStop), name(attacks.osc52)];

/** One for each command there is; what each printed. */
const trials: Record<string, () => Promise<Ended[]>> = {
  run: async () => {
    using other = openPlace();
    const wild = other.suite({
      cases: [{ id: lineStop, verify: 'true' }],
      variants: [{ name: hostileName, model: hostileName, harness: 'bash' }],
      config: { models: { [hostileName]: { wire: 'openai-chat', baseUrl: `${model.url}/v1` } } },
    });
    const running = start(other, ['run', wild]);
    await running.printed(/trials wait for|attempt 1 failed/);
    running.kill('SIGINT');
    return [
      ran,
      await offsite(place, ['run', suite], { env: at(refusing) }),
      await running.ended,
      await offsite(place, ['run', suite, '--replay', stop]),
      await offsite(place, ['run', suite, '--replay', batchOfRun()], { env: at(kind) }),
    ];
  },
  init: async () => {
    using own = openPlace();
    const folder = join(own.folder, 'project', name(attacks.csi).replaceAll('/', ''));
    mkdirSync(folder, { recursive: true });
    const inside = { ...own, folder };
    const args = ['init', '--yes', '--model-ports', String(model.port)];
    return [
      await offsite(inside, args, { dataFolder: null }),
      await offsite(inside, args, { dataFolder: null }),
      await offsite(inside, ['init', '--model-ports', stop], { dataFolder: null }),
    ];
  },
  'case add': async () => {
    using own = openPlace();
    const repository = makeRepository(own.folder);
    repository.commit({ a: '1' });
    repository.commit({ a: '2', [`tests/${name(attacks.csi).replaceAll('/', '')}`]: '1' });
    repository.git('commit', '--amend', '--quiet', '--message', name(hostileText));
    const add = (...args: string[]) => offsite(own, ['case', 'add', ...args], { dataFolder: null });
    const file = own.write(
      'suite.yaml',
      'suite: { id: s, prompt: p }\nvariants: [{ model: m, harness: bash }]\n',
    );
    return [
      await add('--suite', file, '--test', hostileName),
      await add('--suite', file, '--commit', lineStop),
      await add('--suite', file, '--id', hostileName),
      await add('--suite', hostileName),
      await add('--suite', file, '--diff', file),
    ];
  },
  'service start': async () => {
    const line = ['service', 'start', suite];
    return [
      ...(await asked(...line, '--drop-local')),
      ...(await inTurn([line], { env: at(kind) })),
      ...(await plain([...line, '--trials', '1'], [...line, '--variant', hostileName, stop])),
    ];
  },
  resume: () => configured(['resume', hostileName]),
  'data abandon': () => configured(['data', 'abandon', hostileName]),
  'trial fork': async () => {
    const trial = trialOf(2);
    const model = ['--model', hostileName];
    return [
      ...(await configured(
        ['trial', 'fork', trial, '--at', '0', ...model, '--json'],
        ['trial', 'fork', trial, '--at', '5', ...model],
        ['trial', 'fork', stop, '--at', '0', ...model],
        ['trial', 'fork', trial, '--at', '0', ...model, '--harness', hostileName, '--profile', stop],
      )),
      ...(await plain(['fork', trial, '--at', '0', '--model', osc52, '--data-folder', place.folder])),
    ];
  },
  'data batches': () => plain(['data', 'batches'], ['data', 'batches', '--json']),
  show: () => {
    const parts = ['--verify', '--diff', '--transcript', '--model', '--json'];
    return plain(
      ['show'],
      ['show', hostileName],
      ...[0, 1, 2].map((index) => ['show', trialOf(index)]),
      ...parts.map((part) => ['show', trialOf(2), part]),
    );
  },
  'trial artifacts': () => {
    const line = ['trial', 'artifacts'];
    const out = join(place.folder, 'artifacts');
    return plain([...line, trialOf(2)], [...line, trialOf(2), '--out', out], [...line, lineStop]);
  },
  'trial shell': async () => {
    const print = `${say}; printf '%s\\n' *`;
    const inside = ['--data-folder', place.dataFolder, trialOf(2), '--', 'bash', '-c', print];
    return [
      ...(await bare(['trial', 'shell', ...inside])),
      ...(await plain(['trial', 'shell', hostileName])),
    ];
  },
  'tasks list': () => {
    const sets = hostileTasks(place);
    const [rows, whole] = [join(sets, 'rows.jsonl'), join(sets, 'whole.jsonl')];
    return bare(
      ['tasks', 'list', sets, '--details'],
      ['tasks', 'list', sets, '--json'],
      ['tasks', 'list', rows],
      ['tasks', 'list', whole, '--image', hostileName, '--details'],
      ['tasks', 'list', whole, '--build', hostileName],
      ['tasks', 'list', join(sets, hostileName)],
      ['tasks', 'list', sets, '--include', hostileName],
    );
  },
  'tasks import': () => {
    const sets = hostileTasks(place);
    const out = ['--out', join(place.folder, 'imported'), '--force', '--variant', hostileName];
    return bare(
      ['tasks', 'import', 'harbor', sets, ...out],
      ['tasks', 'import', 'swe-bench', join(sets, 'rows.jsonl'), ...out],
      ['tasks', 'import', 'swe-bench', join(sets, 'whole.jsonl'), '--image', hostileName, ...out],
      ['tasks', 'import', hostileName, sets, ...out],
    );
  },
  'trial regrade': () => {
    const line = ['trial', 'regrade', batchOfRun()];
    return configured(line, [...line, '--planned', '--json'], [...line, '--case', hostileName]);
  },
  ...Object.fromEntries(
    fleetCommands.map((args) => [
      `fleet ${args[0]}`,
      async () => [(await onFleet()).get(args[0])].flatMap((ended) => ended ?? []),
    ]),
  ),
  compare: () => {
    const line = ['compare', batchOfRun(), batchOfRun()];
    return plain(line, [...line, '--json'], ['compare', lineStop]);
  },
  export: () => {
    const file = (name: string) => join(place.folder, name);
    return plain(
      ['export', '--json', file('a.jsonl'), '--otlp', file('a.otlp'), '--html', file('a.html')],
      ['export', '--otlp', `${model.url}/${encodeURIComponent(stop)}`],
      ['export', stop, '--json', file('b.jsonl')],
      ['export', '--cassette', file('a.cassette')],
      ['export', '--cassette', file(stop)],
    );
  },
  audit: async () => {
    const evidence = join(place.folder, 'a.evidence');
    return [
      ...(await plain(['export', '--evidence', evidence])),
      ...(await configured(
        ['audit'],
        ['audit', evidence],
        ['audit', evidence, '--json'],
        ['audit', place.write('b.evidence', hostileText)],
        ['audit', stop],
      )),
    ];
  },
  'import-log': () => {
    const [logs, job] = [join(place.folder, 'logs'), join(place.folder, 'job')];
    const header = { eval: { task: hostileName, model: hostileText }, status: hostileName };
    const wrong = zipOf([{ name: 'header.json', content: JSON.stringify(header) }]);
    const named = zipOf([{ name: hostileName, content: 'x' }]);
    return plain(
      ['export', '--inspect', logs, '--harbor', job],
      ['import-log', logs],
      ['import-log', job],
      ['import-log', place.write('wrong.eval', wrong)],
      ['import-log', place.write('named.eval', named)],
      ['import-log', stop],
    );
  },
  view: async () => {
    const running = start(place, ['view', '--port', '0']);
    await running.printed(/http:\S+/);
    running.kill('SIGTERM');
    return [await running.ended];
  },
  check: () => plain(['check', suite]),
  daemon: async () => {
    const running = start(place, ['daemon', ...config()], { env: at(refusing) });
    await running.printed(/cannot look for runs|error/);
    running.kill('SIGTERM');
    return [await running.ended];
  },
  'daemon install': () => configured(['daemon', 'install', '--user', '--print']),
  'daemon uninstall': () => plain(['daemon', 'uninstall', '--user', '--print']),
  'daemon enqueue': () => plain(['daemon', 'enqueue', suite]),
  'daemon status': async () => [
    ...(await answered('daemon', 'status')),
    ...(await answered('daemon', 'status', '--json')),
  ],
  'daemon pause': () => answered('daemon', 'pause'),
  'daemon resume': () => answered('daemon', 'resume'),
  'daemon drain': () => answered('daemon', 'drain'),
  'daemon cancel': () => answered('daemon', 'cancel', stop),
  'daemon concurrency': () => answered('daemon', 'concurrency', '2'),
  serve: async () => {
    const running = start(place, ['serve', '--port', '0']);
    const [, url] = await running.printed(/Eval Service at (http:\S+);/);
    await fetch(`${url}/${encodeURIComponent(name(attacks.v1))}/%E2%80%AEx`);
    running.kill('SIGTERM');
    return [await running.ended];
  },
  'data outbox': () => plain(['data', 'outbox'], ['data', 'outbox', '--json']),
  'data outbox list': () => plain(['data', 'outbox', 'list'], ['data', 'outbox', 'list', '--json']),
  'data outbox send': () => inTurn([['data', 'outbox', 'send']], { env: flaky.env }),
  'data outbox retry': () => plain(['data', 'outbox', 'retry', '99']),
  'data outbox drop': () => plain(['data', 'outbox', 'drop', '1']),
  'data outbox export': () => plain(['data', 'outbox', 'export', '-']),
  ...Object.fromEntries(
    ['case', 'fleet', 'data', 'trial', 'tasks', 'service', 'engine'].map((above) => [
      above,
      () => bare([above]),
    ]),
  ),
  'data check': () => plain(['data', 'check']),
  'data backup': () => plain(['data', 'backup', join(place.folder, stop)]),
  'data prune': () => plain(['data', 'prune', '--older-than', '1d', '--dry-run']),
  'data workspaces': () => plain(['data', 'workspaces'], ['data', 'workspaces', '--json']),
  'engine base-image': () => withBadEngine(['engine', 'base-image', ...config()]),
  quickstart: () => withBadEngine(['quickstart', '--junit', hostileName]),
  doctor: async () => [
    ...(await inTurn([['doctor', ...config()]], { env: { ...badEngine(), ...at(kind) } })),
    ...(await inTurn([['doctor', '--json', ...config()]], { env: { ...badEngine(), ...at(refusing) } })),
  ],
  models: () => configured(['models'], ['models', '--json']),
  'models add': () =>
    configured(
      ['models', 'add', '--base-url', kind.url],
      ['models', 'add', '--base-url', kind.url, '--model', hostileName],
      ['models', 'add', hostileName, '--base-url', model.url],
      ['models', 'add', hostileName, '--base-url', hostileName],
      ['models', 'add', '--api-key-env', stop],
    ),
  'models bench': async () => [
    ...(await configured(['models', 'bench', 'wild'], ['models', 'bench', stop])),
    ...(await plain(['models', 'bench', hostileName, '--parallel', '1', ...atKind()])),
  ],
  'models check': async () => [
    ...(await configured(['models', 'check', 'wild'], ['models', 'check', stop])),
    ...(await plain(['models', 'check', ...atKind()], ['models', 'check', '--json', ...atKind()])),
  ],
  'models list': async () => [
    ...(await configured(['models', 'list'])),
    ...(await plain(['models', 'list', ...atKind()], ['models', 'list', '--json', ...atKind()])),
  ],
  'engine clean': async () => [
    ...(await bare(['engine', 'clean', '--dry-run'])),
    ...(await withBadEngine(['engine', 'clean', '--dry-run'])),
  ],
  'engine images': () => bare(['engine', 'images']),
  'engine images list': async () => [
    ...(await bare(['engine', 'images', 'list'], ['engine', 'images', 'list', '--json'])),
    ...(await withBadEngine(['engine', 'images', 'list'])),
  ],
  'engine images prune': () => bare(['engine', 'images', 'prune', '--dry-run', '--older-than', '1000d']),
  'service whoami': () => asked('service', 'whoami'),
  'service integrations': () => asked('service', 'integrations'),
  'service cases': () => asked('service', 'cases', '--suite', stop),
  'service runs': () => asked('service', 'runs', lineStop),
  'service rerun': () => asked('service', 'rerun', stop, hostileName),
  'service evidence': () => asked('service', 'evidence', stop),
  'service prompts': () => bare(['service', 'prompts']),
  'service prompts get': () => asked('service', 'prompts', 'get', hostileName),
  'service prompts promote': () => asked('service', 'prompts', 'promote', hostileName, stop, '1'),
  'service prompts write': () => asked('service', 'prompts', 'write', stop, suite),
  completion: () => bare(['completion', lineStop]),
  complete: async () => [
    ...(await inTurn([['complete', '--', 'show', '']], {
      dataFolder: null,
      env: { OFFSITE_HOME: place.dataFolder },
    })),
    ...(await inTurn([['complete', '--', 'models', 'check', '']], {
      dataFolder: null,
      env: { OFFSITE_CONFIG: config()[1] ?? '' },
    })),
    ...(await bare(['complete', '--', hostileName, stop])),
  ],
  'service keys': () => bare(['service', 'keys']),
  'service keys create': () => {
    const whose = ['--name', hostileName, '--organization', hostileName];
    return plain(['service', 'keys', 'create', '--for', 'read', ...whose]);
  },
  'service keys list': () => plain(['service', 'keys', 'list'], ['service', 'keys', 'list', '--json']),
  'service keys revoke': () => plain(['service', 'keys', 'revoke', stop]),
};

describe('no command prints foreign text that controls a terminal or a CI system:', () => {
  test('there is a case for each command', async () => {
    const paths = (list: readonly Command[], before: string[] = []): string[] =>
      list.flatMap((command) => {
        const path = [...before, command.name()];
        return [path.join(' '), ...paths(command.commands as Command[], path)];
      });
    expect(Object.keys(trials).toSorted()).toEqual(['complete', ...paths(await commands())].toSorted());
  });

  test.each(Object.entries(trials))('%s', async (_, printed) => {
    const ended = await printed();
    for (const { stdout, stderr } of ended) {
      expect(harmIn(stdout, annotation)).toEqual([]);
      expect(harmIn(stderr, annotation)).toEqual([]);
      expect(stdout.length + stderr.length).toBeGreaterThan(0);
      expect(stderr).not.toContain('unknown option');
    }
  });

  test('a command line that nobody knows', async () => {
    const { stderr } = await offsite(place, [name(attacks.lineStop), name(attacks.osc52)]);
    expect(stderr).toContain('unknown command');
    expect(harmIn(stderr)).toEqual([]);
  });

  test('a suite that is wrong in hostile ways', async () => {
    const bad = {
      [hostileName]: 1,
      suite: { id: hostileText, prompt: 'p' },
      cases: [{ id: '', [hostileName]: 1 }],
    };
    const file = place.write('bad.yaml', stringify(bad));
    const { stderr, exitCode } = await offsite(place, ['run', file]);
    expect(exitCode).toBe(2);
    expect(harmIn(stderr)).toEqual([]);
    const keyed = place.write('keyed.yaml', `suite: { id: s, prompt: p }\n? ["\\e]52;c;x\\a", "::x"]\n: 1\n`);
    expect(harmIn((await offsite(place, ['run', keyed])).stderr)).toEqual([]);
  });
});

describe('a run of a hostile suite', () => {
  test('prints JSON with every name as it is', () => {
    const document = JSON.parse(ran.stdout);
    expect(document.runs.map((run: { case: string }) => run.case).toSorted()).toEqual(
      [name(attacks.stop), hostileName, 'files'].toSorted(),
    );
    const files = document.runs.find((run: { case: string }) => run.case === 'files');
    expect(files.trials[0]).toMatchObject({
      filesChanged: expect.arrayContaining([':x', '\u001b]52;c;x\u0007\n::y']),
      filesChangedCount: 2,
      filesChangedTruncated: false,
    });
  });

  test('writes JUnit XML and a step summary that are text alone', () => {
    const xml = readFileSync(join(place.folder, 'junit.xml'), 'utf8');
    expect(XMLValidator.validate(xml)).toBe(true);
    expect(harmIn(xml)).toEqual([]);
    const markdown = readFileSync(join(place.folder, 'summary.md'), 'utf8');
    expect(harmIn(markdown, /^### /)).toEqual([]);
    const tables = markdown.split('\n\n').filter((block) => block.startsWith('|'));
    expect(tables.map((table) => table.split('\n')[0])).toEqual([
      expect.stringMatching(/^\| run \|/),
      expect.stringMatching(/^\| did not pass \|/),
    ]);
    for (const [head = '', ...rows] of tables.map((table) => table.split('\n')))
      for (const row of rows) expect(row.match(/\|/g)).toHaveLength(head.split('|').length - 1);
  });
});
