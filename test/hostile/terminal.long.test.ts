import { cpSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from '@commander-js/extra-typings';
import { XMLValidator } from 'fast-xml-parser';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { commands } from '../../src/cli/command-list.ts';
import { type FlakyService, openFlakyService } from '../cli/flaky-service.ts';
import { type Ended, offsite, start } from '../cli/offsite.ts';
import { openPlace, type Place } from '../cli/place.ts';
import { zipOf } from '../export/zip-file.ts';
import { makeRepository } from '../suite/git/repository.ts';
import { hostileService, hostileSocket, type Party, refusingParty } from './hostile-parties.ts';
import { attacks, harmIn, hostileName, hostileText } from './hostile-text.ts';

/** What GitHub Actions is told on purpose. */
const annotation = /^::(error|warning) title=/;

const name = (attack: string) => attack.toWellFormed().replaceAll('\0', '');
const shellName = name(hostileText).replaceAll("'", '');
const say = `printf '%s\\n' '${shellName}' '::stop-commands::x' '##[error]y' >&2`;

let place: Place;
let flaky: FlakyService;
let suite: string;
let ran: Ended;
const parties: AsyncDisposable[] = [];
let kind: Party;
let refusing: Party;
let lengthy: Party;
let model: Party;

beforeAll(async () => {
  place = openPlace();
  flaky = await openFlakyService(place);
  kind = await hostileService();
  refusing = await hostileService('all');
  lengthy = await hostileService('at-length');
  model = await refusingParty();
  parties.push(flaky, kind, refusing, lengthy, model);
  suite = place.suite({
    cases: [
      { id: name(attacks.stop), verify: `${say}; false`, variables: { act: say } },
      { id: hostileName, prepare: `${say}; exit 3`, verify: 'true' },
      {
        id: 'files',
        verify: 'true',
        variables: { act: "touch ':x' \"$(printf '\\033]52;c;x\\007\\n::y')\"" },
      },
    ],
    variants: [{ name: hostileName, model: 'none', harness: 'command', profile: 'worker' }],
    config: {
      models: {
        [hostileName]: { wire: 'openai-chat', baseUrl: `${model.url}/v1`, aliases: [name(attacks.osc52)] },
        wild: { wire: 'openai-chat', baseUrl: `${model.url}/v1` },
      },
      daemon: { suites: [hostileName] },
      // gVisor has no filter, and a kernel of its own.
      sandboxes: { local: { seccomp: 'if-available' } },
    },
  });
  flaky.down.add('evals.reportTrial');
  flaky.alter = (operation, body) =>
    operation === 'evals.reportTrial' ? JSON.stringify({ _tag: hostileText, message: hostileText }) : body;
  ran = await offsite(place, ['run', suite, '--json', '--junit', join(place.folder, 'junit.xml')], {
    env: { ...flaky.env, GITHUB_ACTIONS: 'true', GITHUB_STEP_SUMMARY: join(place.folder, 'summary.md') },
  });
});
afterAll(async () => {
  for (const party of parties) await party[Symbol.asyncDispose]();
  place?.[Symbol.dispose]();
});

const at = ({ url }: Party) => ({ OFFSITE_URL: url, OFFSITE_API_KEY: 'key-for-tests' });
const config = () => ['--config', join(place.folder, 'project', 'offsite.yaml')];

/** The command as it is, with JSON, and where the service refuses it. */
async function asked(...args: string[]): Promise<Ended[]> {
  return Promise.all([
    offsite(place, args, { env: at(kind) }),
    offsite(place, [...args, '--json'], { env: at(kind) }),
    offsite(place, args, { env: at(refusing) }),
    offsite(place, args, { env: at(lengthy) }),
  ]);
}

/** With an engine that only says hostile things. */
const badEngine = () => ({ DOCKER_HOST: `tcp://127.0.0.1:${model.port}` });

async function answered(...args: string[]): Promise<Ended[]> {
  using own = openPlace();
  mkdirSync(own.dataFolder, { recursive: true });
  await using _socket = await hostileSocket(join(own.dataFolder, 'control.sock'));
  return [await offsite(own, args)];
}

const plain = async (...args: string[]) => [await offsite(place, args)];

/** For commands that know no data folder. @param env where the engine is, unless it is the real one */
const bare = async (args: string[], env: Record<string, string> = {}) => [
  await offsite(place, args, { env, dataFolder: null }),
];

/** Tasks whose names, texts and keys are hostile, and a task that cannot be read. */
function hostileTasks(): string {
  const folder = `sets/${hostileName.replaceAll('/', '').slice(0, 80)}`;
  const key = JSON.stringify(hostileName);
  const toml = `[task]\n${key} = ${key}\n[environment]\ndocker_image = ${key}\nskills_dir = "/s"\n`;
  for (const name of ['task.toml', 'instruction.md', 'tests/test.sh'])
    place.write(`${folder}/${name}`, name === 'task.toml' ? toml : hostileText);
  place.write(`${folder} unreadable/task.toml`, `[environment]\ncpus = ${key}\n[agent]\nuser = [${key}]\n`);
  const row = { instance_id: hostileName, [hostileName]: 1 };
  const texts = { repo: hostileName, problem_statement: hostileText, test_patch: hostileText };
  const whole = { ...row, ...texts, base_commit: 'a', FAIL_TO_PASS: [hostileName], PASS_TO_PASS: [] };
  place.write('sets/rows.jsonl', `${JSON.stringify(row)}\n`);
  place.write('sets/whole.jsonl', `${JSON.stringify(whole)}\n`);
  return join(place.folder, 'project', 'sets');
}

/**
 * Commands of the fleet that ask a server, or look for what is not there, about something with a hostile
 * name.
 */
const fleetCommands = [
  ['status'],
  ...['attach', 'rerun', 'pull', 'pause', 'unpause', 'cancel'].map((name) => [name, hostileName]),
  ['run', hostileName],
  ['poll'],
  ['worker'],
  ['drain'],
];

let fleetEnded: Promise<Map<string | undefined, Ended>> | undefined;

/** All of them at once, since each waits for a server that says only hostile things. */
function onFleet(): Promise<Map<string | undefined, Ended>> {
  const fleet = { address: `127.0.0.1:${model.port}`, storage: { folder: place.folder } };
  const file = place.write('fleet.yaml', stringify({ fleet, daemon: { suites: [hostileName] } }));
  fleetEnded ??= Promise.all(
    fleetCommands.map(async (args) => {
      const ended = await offsite(place, ['fleet', ...args, '--config', file], { env: at(kind) });
      return [args[0], ended] as const;
    }),
  ).then((all) => new Map(all));
  return fleetEnded;
}

/** A configuration of one model, at this party. */
function modelAt({ url }: Party): string[] {
  const models = { [hostileName]: { wire: 'openai-chat', baseUrl: `${url}/v1` } };
  return ['--config', place.write('one-model.yaml', stringify({ models }))];
}

/** One for each command there is; what each printed. */
const trials: Record<string, () => Promise<Ended[]>> = {
  run: async () => {
    using other = openPlace();
    const wild = other.suite({
      cases: [{ id: name(attacks.lineStop), verify: 'true' }],
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
      await offsite(place, ['run', suite, '--replay', name(attacks.stop)]),
      await offsite(place, ['run', suite, '--replay', JSON.parse(ran.stdout).batchId], { env: at(kind) }),
    ];
  },
  init: async () => {
    using own = openPlace();
    const found = { scripts: { test: hostileText }, packageManager: hostileText };
    own.write('package.json', JSON.stringify(found));
    const folder = join(own.folder, 'project', name(attacks.csi).replaceAll('/', ''));
    mkdirSync(folder);
    cpSync(join(own.folder, 'project', 'package.json'), join(folder, 'package.json'));
    const inside = { ...own, folder };
    const args = ['init', '--yes', '--model-ports', String(model.port)];
    return [
      await offsite(inside, args, { dataFolder: null }),
      await offsite(inside, args, { dataFolder: null }),
      await offsite(inside, ['init', '--model-ports', name(attacks.stop)], { dataFolder: null }),
    ];
  },
  case: () => bare(['case']),
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
      await add('--suite', file, '--commit', name(attacks.lineStop)),
      await add('--suite', file, '--id', hostileName),
      await add('--suite', hostileName),
      await add('--suite', file, '--diff', file),
    ];
  },
  'service start': async () => {
    return [
      ...(await asked('service', 'start', suite, '--drop-local')),
      await offsite(place, ['service', 'start', suite], { env: at(kind) }),
      ...(await plain('service', 'start', suite, '--trials', '1')),
      ...(await plain('service', 'start', suite, '--variant', hostileName, name(attacks.stop))),
    ];
  },
  resume: () => plain('resume', hostileName, ...config()),
  'data abandon': () => plain('data', 'abandon', hostileName, ...config()),
  'trial fork': async () => {
    const trial = `${JSON.parse(ran.stdout).runs[2].id}#0`;
    const args = ['--at', '0', '--model', hostileName, ...config()];
    return [
      ...(await plain('trial', 'fork', trial, ...args, '--json')),
      ...(await plain('trial', 'fork', trial, '--at', '5', '--model', hostileName, ...config())),
      ...(await plain('trial', 'fork', name(attacks.stop), ...args)),
      ...(await plain(
        'trial',
        'fork',
        trial,
        ...args,
        '--harness',
        hostileName,
        '--profile',
        name(attacks.stop),
      )),
      ...(await plain(
        'fork',
        trial,
        '--at',
        '0',
        '--model',
        name(attacks.osc52),
        '--data-folder',
        place.folder,
      )),
    ];
  },
  'data batches': async () => [
    ...(await plain('data', 'batches')),
    ...(await plain('data', 'batches', '--json')),
  ],
  show: async () => {
    const trials = JSON.parse(ran.stdout).runs.map((run: { id: string }) => `${run.id}#0`);
    const parts = ['--verify', '--diff', '--transcript', '--model', '--json'];
    return [
      ...(await plain('show')),
      ...(await plain('show', hostileName)),
      ...(await Promise.all(trials.map((trial: string) => offsite(place, ['show', trial])))),
      ...(await Promise.all(parts.map((part) => offsite(place, ['show', trials[2], part])))),
    ];
  },
  'trial artifacts': async () => {
    const out = join(place.folder, 'artifacts');
    const trial = `${JSON.parse(ran.stdout).runs[2].id}#0`;
    return [
      ...(await plain('trial', 'artifacts', trial)),
      ...(await plain('trial', 'artifacts', trial, '--out', out)),
      ...(await plain('trial', 'artifacts', name(attacks.lineStop))),
    ];
  },
  'trial shell': async () => {
    const trial = `${JSON.parse(ran.stdout).runs[2].id}#0`;
    const print = `${say}; printf '%s\\n' *`;
    const args = ['trial', 'shell', '--data-folder', place.dataFolder, trial, '--', 'bash', '-c', print];
    return [
      await offsite(place, args, { dataFolder: null }),
      ...(await plain('trial', 'shell', hostileName)),
    ];
  },
  'tasks list': async () => {
    const sets = hostileTasks();
    return [
      ...(await bare(['tasks', 'list', sets, '--details'])),
      ...(await bare(['tasks', 'list', sets, '--json'])),
      ...(await bare(['tasks', 'list', join(sets, 'rows.jsonl')])),
      ...(await bare(['tasks', 'list', join(sets, 'whole.jsonl'), '--image', hostileName, '--details'])),
      ...(await bare(['tasks', 'list', join(sets, 'whole.jsonl'), '--build', hostileName])),
      ...(await bare(['tasks', 'list', join(sets, hostileName)])),
      ...(await bare(['tasks', 'list', sets, '--include', hostileName])),
    ];
  },
  'tasks import': async () => {
    const sets = hostileTasks();
    const out = ['--out', join(place.folder, 'imported'), '--force', '--variant', hostileName];
    return [
      ...(await bare(['tasks', 'import', 'harbor', sets, ...out])),
      ...(await bare(['tasks', 'import', 'swe-bench', join(sets, 'rows.jsonl'), ...out])),
      ...(await bare([
        'tasks',
        'import',
        'swe-bench',
        join(sets, 'whole.jsonl'),
        '--image',
        hostileName,
        ...out,
      ])),
      ...(await bare(['tasks', 'import', hostileName, sets, ...out])),
    ];
  },
  'trial regrade': async () => {
    const { batchId } = JSON.parse(ran.stdout);
    return [
      ...(await plain('trial', 'regrade', batchId, ...config())),
      ...(await plain('trial', 'regrade', batchId, '--planned', '--json', ...config())),
      ...(await plain('trial', 'regrade', batchId, '--case', hostileName, ...config())),
    ];
  },
  fleet: () => bare(['fleet']),
  ...Object.fromEntries(
    fleetCommands.map((args) => [
      `fleet ${args[0]}`,
      async () => [(await onFleet()).get(args[0])].flatMap((ended) => ended ?? []),
    ]),
  ),
  compare: async () => {
    const { batchId } = JSON.parse(ran.stdout);
    return [
      ...(await plain('compare', batchId, batchId)),
      ...(await plain('compare', batchId, batchId, '--json')),
      ...(await plain('compare', name(attacks.lineStop))),
    ];
  },
  export: async () => {
    const file = (name: string) => join(place.folder, name);
    return [
      ...(await plain(
        'export',
        '--json',
        file('a.jsonl'),
        '--otlp',
        file('a.otlp'),
        '--html',
        file('a.html'),
      )),
      ...(await plain('export', '--otlp', `${model.url}/${encodeURIComponent(name(attacks.stop))}`)),
      ...(await plain('export', name(attacks.stop), '--json', file('b.jsonl'))),
      ...(await plain('export', '--cassette', file('a.cassette'))),
      ...(await plain('export', '--cassette', file(name(attacks.stop)))),
    ];
  },
  audit: async () => {
    const evidence = join(place.folder, 'a.evidence');
    return [
      ...(await plain('export', '--evidence', evidence)),
      ...(await plain('audit', ...config())),
      ...(await plain('audit', evidence, ...config())),
      ...(await plain('audit', evidence, '--json', ...config())),
      ...(await plain('audit', place.write('b.evidence', hostileText), ...config())),
      ...(await plain('audit', name(attacks.stop), ...config())),
    ];
  },
  'import-log': async () => {
    const [logs, job] = ['logs', 'job'].map((one) => join(place.folder, one));
    const header = { eval: { task: hostileName, model: hostileText }, status: hostileName };
    const wrong = zipOf([{ name: 'header.json', content: JSON.stringify(header) }]);
    const named = zipOf([{ name: hostileName, content: 'x' }]);
    return [
      ...(await plain('export', '--inspect', logs ?? '', '--harbor', job ?? '')),
      ...(await plain('import-log', logs ?? '')),
      ...(await plain('import-log', job ?? '')),
      ...(await plain('import-log', place.write('wrong.eval', wrong))),
      ...(await plain('import-log', place.write('named.eval', named))),
      ...(await plain('import-log', name(attacks.stop))),
    ];
  },
  view: async () => {
    const running = start(place, ['view', '--port', '0']);
    await running.printed(/http:\S+/);
    running.kill('SIGTERM');
    return [await running.ended];
  },
  check: () => plain('check', suite),
  daemon: async () => {
    const running = start(place, ['daemon', ...config()], { env: at(refusing) });
    await running.printed(/cannot look for runs|error/);
    running.kill('SIGTERM');
    return [await running.ended];
  },
  'daemon install': () => plain('daemon', 'install', '--user', '--print', ...config()),
  'daemon uninstall': () => plain('daemon', 'uninstall', '--user', '--print'),
  'daemon enqueue': () => plain('daemon', 'enqueue', suite),
  'daemon status': async () => [
    ...(await answered('daemon', 'status')),
    ...(await answered('daemon', 'status', '--json')),
  ],
  'daemon pause': () => answered('daemon', 'pause'),
  'daemon resume': () => answered('daemon', 'resume'),
  'daemon drain': () => answered('daemon', 'drain'),
  'daemon cancel': () => answered('daemon', 'cancel', name(attacks.stop)),
  'daemon concurrency': () => answered('daemon', 'concurrency', '2'),
  serve: async () => {
    const running = start(place, ['serve', '--port', '0']);
    const [, url] = await running.printed(/Eval Service at (http:\S+);/);
    await fetch(`${url}/${encodeURIComponent(name(attacks.v1))}/%E2%80%AEx`);
    running.kill('SIGTERM');
    return [await running.ended];
  },
  'data outbox': async () => [
    ...(await plain('data', 'outbox')),
    ...(await plain('data', 'outbox', '--json')),
  ],
  'data outbox list': async () => [
    ...(await plain('data', 'outbox', 'list')),
    ...(await plain('data', 'outbox', 'list', '--json')),
  ],
  'data outbox send': async () => [await offsite(place, ['data', 'outbox', 'send'], { env: flaky.env })],
  'data outbox retry': () => plain('data', 'outbox', 'retry', '99'),
  'data outbox drop': () => plain('data', 'outbox', 'drop', '1'),
  'data outbox export': () => plain('data', 'outbox', 'export', '-'),
  data: () => bare(['data']),
  trial: () => bare(['trial']),
  tasks: () => bare(['tasks']),
  service: () => bare(['service']),
  engine: () => bare(['engine']),
  'data check': () => plain('data', 'check'),
  'data backup': () => plain('data', 'backup', join(place.folder, name(attacks.stop))),
  'data prune': () => plain('data', 'prune', '--older-than', '1d', '--dry-run'),
  'data workspaces': async () => [
    ...(await plain('data', 'workspaces')),
    ...(await plain('data', 'workspaces', '--json')),
  ],
  'engine base-image': () => bare(['engine', 'base-image', ...config()], badEngine()),
  quickstart: () => bare(['quickstart', '--junit', hostileName], badEngine()),
  doctor: async () => [
    await offsite(place, ['doctor', ...config()], { env: { ...badEngine(), ...at(kind) } }),
    await offsite(place, ['doctor', '--json', ...config()], { env: { ...badEngine(), ...at(refusing) } }),
  ],
  models: async () => [
    ...(await plain('models', ...config())),
    ...(await plain('models', '--json', ...config())),
  ],
  'models add': async () => [
    ...(await plain('models', 'add', '--base-url', kind.url, ...config())),
    ...(await plain('models', 'add', '--base-url', kind.url, '--model', hostileName, ...config())),
    ...(await plain('models', 'add', hostileName, '--base-url', model.url, ...config())),
    ...(await plain('models', 'add', hostileName, '--base-url', hostileName, ...config())),
    ...(await plain('models', 'add', '--api-key-env', name(attacks.stop), ...config())),
  ],
  'models bench': async () => [
    ...(await plain('models', 'bench', 'wild', ...config())),
    ...(await plain('models', 'bench', hostileName, '--parallel', '1', ...modelAt(kind))),
    ...(await plain('models', 'bench', name(attacks.stop), ...config())),
  ],
  'models check': async () => [
    ...(await plain('models', 'check', 'wild', ...config())),
    ...(await plain('models', 'check', ...modelAt(kind))),
    ...(await plain('models', 'check', '--json', ...modelAt(kind))),
    ...(await plain('models', 'check', name(attacks.stop), ...config())),
  ],
  'models list': async () => [
    ...(await plain('models', 'list', ...config())),
    ...(await plain('models', 'list', ...modelAt(kind))),
    ...(await plain('models', 'list', '--json', ...modelAt(kind))),
  ],
  'engine clean': async () => [
    ...(await bare(['engine', 'clean', '--dry-run'])),
    ...(await bare(['engine', 'clean', '--dry-run'], badEngine())),
  ],
  'engine images': () => bare(['engine', 'images']),
  'engine images list': async () => [
    ...(await bare(['engine', 'images', 'list'])),
    ...(await bare(['engine', 'images', 'list', '--json'])),
    ...(await bare(['engine', 'images', 'list'], badEngine())),
  ],
  'engine images prune': () => bare(['engine', 'images', 'prune', '--dry-run', '--older-than', '1000d']),
  'service whoami': () => asked('service', 'whoami'),
  'service integrations': () => asked('service', 'integrations'),
  'service cases': () => asked('service', 'cases', '--suite', name(attacks.stop)),
  'service runs': () => asked('service', 'runs', name(attacks.lineStop)),
  'service rerun': () => asked('service', 'rerun', name(attacks.stop), hostileName),
  'service evidence': () => asked('service', 'evidence', name(attacks.stop)),
  'service prompts': () => bare(['service', 'prompts']),
  'service prompts get': () => asked('service', 'prompts', 'get', hostileName),
  'service prompts promote': () =>
    asked('service', 'prompts', 'promote', hostileName, name(attacks.stop), '1'),
  'service prompts write': () => asked('service', 'prompts', 'write', name(attacks.stop), suite),
  completion: () => bare(['completion', name(attacks.lineStop)]),
  complete: async () => [
    ...(await bare(['complete', '--', 'show', ''], { OFFSITE_HOME: place.dataFolder })),
    ...(await bare(['complete', '--', 'models', 'check', ''], { OFFSITE_CONFIG: config()[1] ?? '' })),
    ...(await bare(['complete', '--', hostileName, name(attacks.stop)])),
  ],
  'service keys': () => bare(['service', 'keys']),
  'service keys create': () =>
    plain('service', 'keys', 'create', '--for', 'read', '--name', hostileName, '--organization', hostileName),
  'service keys list': async () => [
    ...(await plain('service', 'keys', 'list')),
    ...(await plain('service', 'keys', 'list', '--json')),
  ],
  'service keys revoke': () => plain('service', 'keys', 'revoke', name(attacks.stop)),
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
