import { expect, test } from 'vitest';
import { readPlan, storedPlan } from '../../src/agent/batch-run.ts';
import { loadConfig } from '../../src/suite/load-config.ts';
import { loadSuite } from '../../src/suite/load-suite.ts';
import { eachFolder, folder, write } from '../each-folder.ts';
import { problemsOf } from './problems-of.ts';

eachFolder();

const head =
  'suite: { id: s, prompt: x }\nvariants: [{ model: none, harness: command, profile: p }]\n' +
  'cases: [{ id: a, verify: "true" }]\nenvironment:\n  services:\n';

function load(services: string) {
  write(
    'offsite.yaml',
    'profiles:\n  p: { run: "true" }\nadvanced: { images: { "postgres:17": my/postgres } }\n',
  );
  return loadSuite(write('suite.yaml', head + services), loadConfig({ suiteFolder: folder, env: {} }), [
    { name: 'command', wires: [], runsScript: true, continues: false, mcp: [], limits: [] },
  ]);
}

const problems = (services: string) => problemsOf(() => load(services)).split('\n');

test('services become part of the plan, with their files and places, and survive being stored', () => {
  write('db/init.sql', 'SELECT 1;');
  write('web/Dockerfile', 'FROM offsite/base\n');
  const plan = load(`    db:
      image: postgres:17
      aliases: [database]
      env: { PASSWORD: paper }
      healthcheck: { command: [pg_isready, -q], interval: 1s }
      files: { /init/init.sql: db/init.sql }
      resources: { memory: 64m }
    web:
      build: { context: web }
      command: [serve]
      dependsOn: { db: healthy }
      healthcheck: false
`);
  const services = plan.cases[0]?.local.environment.services;
  expect(services).toMatchObject([
    {
      name: 'db',
      aliases: ['database'],
      image: {
        name: 'postgres:17',
        mappedTo: 'my/postgres',
        place: expect.stringMatching(/suite.yaml:7:7$/),
      },
      env: { PASSWORD: 'paper' },
      healthcheck: {
        command: ['pg_isready', '-q'],
        interval: 1000,
        timeout: 30_000,
        startPeriod: 0,
        retries: 3,
      },
      files: [{ path: '/init/init.sql', content: Buffer.from('SELECT 1;') }],
      resources: { memory: 64 * 2 ** 20 },
      place: expect.stringMatching(/suite.yaml:6:5$/),
    },
    {
      name: 'web',
      build: { name: 'web/Dockerfile' },
      command: ['serve'],
      dependsOn: [{ service: 'db', until: 'healthy' }],
      healthcheck: 'none',
    },
  ]);
  const stored = JSON.parse(JSON.stringify(storedPlan(plan)));
  const again = readPlan(stored).cases[0]?.local.environment.services;
  expect(again).toEqual(services);
});

test.each([
  ['    db: {}', /^suite.yaml:6:5: environment.services.db: needs an image or a build$/],
  ['    db: { image: a, build: {} }', /services.db: needs an image or a build/],
  ['    localhost: { image: a }', /services.localhost: .*taken by the sandbox/],
  ['    "a b": { image: a }', /expected letters, digits/],
  ['    "a\\n127.0.0.1 evil": { image: a }', /expected letters, digits/],
  ['    db: { image: a, dependsOn: { web: healthy } }', /services.db.dependsOn: there is no service web/],
  [
    '    db: { image: a, dependsOn: { db: started } }',
    /services.db.dependsOn: it depends on itself through other services/,
  ],
  ['    db: { image: a, aliases: [x] }\n    x: { image: a }', /services.x: x is also a name of db/],
  [
    '    db: { image: a, files: { relative: f } }',
    /services.db: files and folders of a service need absolute paths/,
  ],
  ['    db: { image: a, files: { /f: none } }', /suite.yaml:6:\d+: environment.services.db.files: .*none/],
  ['    db: { build: { context: none } }', /suite.yaml:6:\d+: environment.services.db.build: /],
  ['    db: { image: a, privileged: true }', /privileged/],
])('a wrong service is told with its place: %s', (services, message) => {
  expect(problems(services)).toContainEqual(expect.stringMatching(message));
});

test('there is a limit on services', () => {
  const many = Array.from({ length: 17 }, (_, index) => `    s${index}: { image: a }`).join('\n');
  expect(problems(many)).toContainEqual(
    expect.stringMatching(/there are 17 services; Offsite runs at most 16/),
  );
});

test('a healthcheck without a command says what a command is', () => {
  expect(problems('    db: { image: postgres:17, healthcheck: { comand: x } }\n')).toEqual([
    expect.stringContaining('db.healthcheck.command: is required: expected a text, or a list of texts'),
    expect.stringContaining('db.healthcheck.comand: unknown key'),
  ]);
});
